//! A web server that counts primes: `cargo run --release`, then `curl http://127.0.0.1:PORT/primes/1000000`.

use std::time::Duration;

use heist_example_axum::Server;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/primes/1000000", listener.local_addr()?);
        let server =
            Server::new(heist::Pool::builder().max_queued(64).build()?, Duration::from_secs(2));
        axum::serve(listener, server.router()).await?;
        Ok(())
    })
}
