//! The server on loopback: an answer, a deadline, and a client that goes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use heist::Cancelled;
use heist_example_axum::{Server, count_primes};
use tokio::runtime::Runtime;

/// Takes hours, but no chunk takes long.
const ENDLESS: u64 = 1 << 36;

/// Serves until the runtime is dropped.
fn serve(deadline: Duration) -> (Runtime, Server, SocketAddr) {
    serve_on(heist::Pool::builder().workers(2).build().expect("a pool"), deadline)
}

fn serve_on(pool: heist::Pool, deadline: Duration) -> (Runtime, Server, SocketAddr) {
    let server = Server::new(pool, deadline);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = server.router();
    runtime.spawn(async { axum::serve(listener, router).await });
    (runtime, server, address)
}

fn request(address: SocketAddr, end: u64) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a server");
    let head = format!("GET /primes/{end} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("a server that reads");
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

/// Returns the answer of the first stream that has one.
fn first_answer(streams: &mut [TcpStream]) -> String {
    for stream in &mut *streams {
        stream.set_nonblocking(true).expect("a socket");
    }
    loop {
        for stream in &mut *streams {
            let mut bytes = [0; 1024];
            match stream.read(&mut bytes) {
                Ok(length) => return String::from_utf8_lossy(&bytes[..length]).into_owned(),
                Err(_) => std::thread::yield_now(),
            }
        }
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

#[test]
fn counts_primes() {
    let (_runtime, _server, address) = serve(Duration::from_secs(600));
    for (end, primes) in [(0, 0), (3, 1), (100, 25), (10_000, 1229)] {
        let text = answer(request(address, end));
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert!(text.ends_with(&format!("\r\n\r\n{primes}\n")), "{text}");
    }
}

/// The answer comes at the deadline, and the work ends.
#[test]
fn has_a_deadline() {
    let (_runtime, server, address) = serve(Duration::from_millis(20));
    let text = answer(request(address, ENDLESS));
    assert!(text.starts_with("HTTP/1.1 504"), "{text}");
    wait_until(|| server.running() == 0);
}

/// When the client goes, the work ends.
#[test]
fn cancels_when_the_client_goes() {
    let (_runtime, server, address) = serve(Duration::from_secs(600));
    let client = request(address, ENDLESS);
    wait_until(|| server.running() == 1);
    drop(client);
    wait_until(|| server.running() == 0);
}

/// A request does not wait for those before it whose clients have gone: none of them is computed.
#[test]
fn abandoned_requests_delay_nobody() {
    const ABANDONED: usize = 300;
    let pool = heist::Pool::builder().workers(1).build().expect("a pool");
    let handle = pool.handle();
    let (_runtime, server, address) = serve_on(pool, Duration::from_secs(600));
    let running = request(address, ENDLESS);
    wait_until(|| server.running() == 1);
    let abandoned: Vec<_> = (0..ABANDONED).map(|_| request(address, ENDLESS)).collect();
    // All of them are queued, behind the running one.
    wait_until(|| handle.stats().total.tasks_submitted == ABANDONED as u64 + 1);
    drop(abandoned);
    wait_until(|| server.waiting() == 1);
    let fresh = request(address, 100);
    wait_until(|| server.waiting() == 2);
    drop(running);
    let text = answer(fresh);
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("\r\n\r\n25\n"), "{text}");
    assert_eq!(server.started(), 2, "the first one and the fresh one");
}

/// A request that comes when too many are waiting is refused at once.
#[test]
fn refuses_when_too_many_are_waiting() {
    let pool = heist::Pool::builder().workers(1).max_queued(1).build().expect("a pool");
    let (_runtime, server, address) = serve_on(pool, Duration::from_secs(600));
    let running = request(address, ENDLESS);
    wait_until(|| server.running() == 1);
    // Of two more, one is queued, and the other one is refused.
    let mut waiting = [request(address, ENDLESS), request(address, ENDLESS)];
    let refused = first_answer(&mut waiting);
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    drop((running, waiting));
    wait_until(|| server.running() == 0);
}

#[test]
fn ends_early_when_cancelled() {
    let token = heist::CancelToken::new();
    assert_eq!(token.run(|| count_primes(1000)), Ok(Ok(168)));
    let cancelled = token.run(|| {
        token.cancel();
        assert!(heist::is_cancelled());
        count_primes(1000)
    });
    assert!(matches!(cancelled, Err(Cancelled) | Ok(Err(Cancelled))), "{cancelled:?}");
}
