//! The signal that has a worker finish what it has started and end.

use std::future::pending;
use std::io;

/// Waits for SIGTERM. From then on, the signal does not end the process by itself.
#[cfg(unix)]
pub(crate) struct Terminate(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Terminate {
    pub(crate) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate()).map(Self)
    }

    /// Returns when the signal has come.
    pub(crate) async fn requested(&mut self) {
        if self.0.recv().await.is_none() {
            pending().await
        }
    }
}

/// On this system, only [`Cluster::drain`](crate::Cluster::drain) drains a worker.
#[cfg(not(unix))]
pub(crate) struct Terminate(());

#[cfg(not(unix))]
impl Terminate {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(()))
    }

    pub(crate) async fn requested(&mut self) {
        pending().await
    }
}
