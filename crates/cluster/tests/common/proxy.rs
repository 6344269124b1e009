//! A connection between a node and a server that tests delay, cut and partition.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::{host, until};

/// How often a connection looks whether it is to go on.
const LOOK: Duration = Duration::from_millis(5);

/// Accepts connections and passes on their bytes.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
}

struct Shared {
    server: SocketAddr,
    /// Nothing passes, and nobody is told.
    partitioned: AtomicBool,
    delay_millis: AtomicU64,
    accepted: AtomicU64,
    /// Directions of connections that are not closed.
    open: AtomicU64,
    bytes: AtomicU64,
    over: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub(crate) fn new(server: Ipv4Addr, port: u16) -> Self {
        let listener = TcpListener::bind((host(), 0)).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            server: (server, port).into(),
            partitioned: AtomicBool::new(false),
            delay_millis: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            open: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            over: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Self { shared, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Every byte needs this much longer in each direction.
    pub(crate) fn delay(&self, delay: Duration) {
        self.shared.delay_millis.store(delay.as_millis() as u64, Ordering::SeqCst);
    }

    /// Closes all connections.
    pub(crate) fn cut(&self) {
        for connection in self.shared.connections.lock().expect("no panic").drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// From now on nothing passes, and no connection is closed. Or everything passes again, what has waited included.
    pub(crate) fn partition(&self, partitioned: bool) {
        self.shared.partitioned.store(partitioned, Ordering::SeqCst);
    }

    /// Returns how many connections there were.
    pub(crate) fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Returns how many bytes have passed.
    pub(crate) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::SeqCst)
    }

    /// Returns whether a node is connected to the server.
    pub(crate) fn is_used(&self) -> bool {
        self.shared.open.load(Ordering::SeqCst) > 0
    }

    /// Waits until there is a further connection.
    pub(crate) fn wait_for_connection_after(&self, accepted: u64) {
        until("a further connection", || (self.accepted() > accepted).then_some(()));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.is_over() {
                return;
            }
            let Ok(client) = client else { continue };
            self.accepted.fetch_add(1, Ordering::SeqCst);
            // While the server is gone, the connection is closed.
            let Ok(server) = TcpStream::connect(self.server) else { continue };
            let copy = |stream: &TcpStream| stream.try_clone().expect("a copy of a socket");
            self.connections.lock().expect("no panic").extend([copy(&client), copy(&server)]);
            for (from, to) in [(copy(&client), copy(&server)), (server, client)] {
                let (sender, receiver) = channel();
                let (reading, writing) = (Arc::clone(&self), Arc::clone(&self));
                thread::spawn(move || {
                    reading.read(from, |due, bytes| sender.send((due, bytes)).is_ok())
                });
                self.open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    writing.write(to, &receiver);
                    writing.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        }
    }

    fn read(&self, mut from: TcpStream, pass: impl Fn(Instant, Vec<u8>) -> bool) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let delay = Duration::from_millis(self.delay_millis.load(Ordering::SeqCst));
            if !pass(Instant::now() + delay, buffer[..count].to_vec()) {
                break;
            }
        }
    }

    fn write(&self, mut to: TcpStream, bytes: &Receiver<(Instant, Vec<u8>)>) {
        for (due, bytes) in bytes {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            while self.partitioned.load(Ordering::SeqCst) && !self.is_over() {
                thread::sleep(LOOK);
            }
            self.bytes.fetch_add(bytes.len() as u64, Ordering::SeqCst);
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // The other side has ended, so this one does.
        let _ = to.shutdown(Shutdown::Both);
    }
}
