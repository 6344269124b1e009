//! A page of text for Prometheus, at an address of the coordinator.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::error::ClusterError;
use crate::settings::Settings;

/// How long a reader may take.
const LIMIT: Duration = Duration::from_secs(2);
/// A request has fewer bytes.
const REQUEST: usize = 8 << 10;
/// The time before connections are accepted again after the system has refused one.
const BACK_OFF: Duration = Duration::from_millis(100);

/// The page of a run, if there is one.
pub(crate) struct Page {
    /// Before the network thread has it.
    bound: Option<std::net::TcpListener>,
    listener: Option<TcpListener>,
}

impl Page {
    /// Takes the address of the settings, if they have one.
    pub(crate) fn new(settings: &Settings) -> Result<Self, ClusterError> {
        let bind = |address: SocketAddr| {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let bound = settings.metrics.map(|address| {
            bind(address).map_err(|error: std::io::Error| ClusterError::Setting {
                name: "metrics",
                value: address.to_string(),
                hint: format!("the system refuses it ({error}): use another port, or an address of this machine"),
            })
        });
        Ok(Self { bound: bound.transpose()?, listener: None })
    }

    /// Accepts connections from now on. Must be called in the runtime.
    pub(crate) fn open(&mut self) -> Result<(), ClusterError> {
        self.listener = self.bound.take().map(TcpListener::from_std).transpose()?;
        Ok(())
    }

    /// Waits for a reader.
    pub(crate) async fn reader(&self) -> Reader {
        let Some(listener) = &self.listener else { return std::future::pending().await };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return Reader(stream),
                // The reader is gone, or there are too many files.
                Err(_) => sleep(BACK_OFF).await,
            }
        }
    }
}

/// Somebody who wants to read the page.
pub(crate) struct Reader(TcpStream);

impl Reader {
    /// Sends the page, while the caller goes on.
    pub(crate) fn give(self, page: String) {
        tokio::spawn(async move {
            let Self(mut stream) = self;
            // What becomes of it does not matter to the run.
            let _ = timeout(LIMIT, answer(&mut stream, &page)).await;
        });
    }
}

async fn answer(stream: &mut TcpStream, page: &str) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > REQUEST || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let is_known = [&b"GET / "[..], b"GET /metrics "].iter().any(|line| request.starts_with(line));
    let (status, page) =
        if is_known { ("200 OK", page) } else { ("404 Not Found", "the page is /metrics\n") };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        page.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}
