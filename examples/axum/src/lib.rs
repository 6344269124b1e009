//! Work for the processors does not belong on the threads of an asynchronous runtime: a thread that computes polls nothing
//! else. So a handler spawns it on a heist pool, and awaits the handle.
//!
//! The handler has a deadline. The task is cancelled when the handler's future is dropped: after its deadline, and when the
//! client has gone, because axum drops the future then. If the task has not started, it never will. If it runs, its loop asks
//! in every chunk whether it was cancelled. The pool refuses requests when too many are queued.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use heist::{Cancelled, JoinError, Pool};

/// How many numbers are tested between two looks whether the task was cancelled.
const CHUNK: u64 = 1024;

/// A pool, and how long a request may take.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

struct Shared {
    pool: Pool,
    deadline: Duration,
    waiting: AtomicUsize,
    started: AtomicUsize,
    running: AtomicUsize,
}

impl Server {
    /// Returns a server that computes on that pool.
    pub fn new(pool: Pool, deadline: Duration) -> Self {
        let [waiting, started, running] = [0; 3].map(AtomicUsize::new);
        Self(Arc::new(Shared { pool, deadline, waiting, started, running }))
    }

    /// Returns the routes of the server.
    pub fn router(&self) -> Router {
        Router::new().route("/primes/{end}", get(primes)).with_state(self.clone())
    }

    /// Returns how many clients wait for an answer, as far as the server knows.
    pub fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::SeqCst)
    }

    /// Returns how many requests have begun to be computed since the start of the server.
    pub fn started(&self) -> usize {
        self.0.started.load(Ordering::SeqCst)
    }

    /// Returns how many requests are being computed.
    pub fn running(&self) -> usize {
        self.0.running.load(Ordering::SeqCst)
    }
}

/// A client that waits. The handler's future drops it last, when the task is cancelled.
struct Waiting(Server);

impl Waiting {
    fn new(server: &Server) -> Self {
        server.0.waiting.fetch_add(1, Ordering::SeqCst);
        Self(server.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn primes(
    State(server): State<Server>,
    Path(end): Path<u64>,
) -> Result<String, (StatusCode, String)> {
    let _waiting = Waiting::new(&server);
    let shared = &server.0;
    let counted = Arc::clone(shared);
    let spawned = shared.pool.task().try_spawn(move || {
        counted.started.fetch_add(1, Ordering::SeqCst);
        counted.running.fetch_add(1, Ordering::SeqCst);
        let count = count_primes(end);
        counted.running.fetch_sub(1, Ordering::SeqCst);
        count
    });
    let Ok(task) = spawned else {
        return Err((
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests are waiting\n".to_owned(),
        ));
    };
    match tokio::time::timeout(shared.deadline, task.abort_on_drop()).await {
        Ok(Ok(Ok(count))) => Ok(format!("{count}\n")),
        Ok(Ok(Err(Cancelled))) | Err(_) => {
            let text = "the deadline has passed: ask for fewer numbers\n";
            Err((StatusCode::GATEWAY_TIMEOUT, text.to_owned()))
        }
        Ok(Err(JoinError::Panicked(panic))) => {
            Err((StatusCode::INTERNAL_SERVER_ERROR, format!("{panic}\n")))
        }
        Ok(Err(stopped)) => Err((StatusCode::SERVICE_UNAVAILABLE, format!("{stopped}\n"))),
    }
}

/// Counts the primes below `end`, on all workers of the pool that this runs on, unless the task is cancelled.
pub fn count_primes(end: u64) -> Result<u64, Cancelled> {
    let count = AtomicU64::new(0);
    heist::parallel::try_for_each(0..end.div_ceil(CHUNK), |chunk| {
        if heist::is_cancelled() {
            return Err(Cancelled);
        }
        let numbers = chunk * CHUNK..end.min((chunk + 1) * CHUNK);
        let primes = numbers.filter(|&number| is_prime(number)).count() as u64;
        count.fetch_add(primes, Ordering::Relaxed);
        Ok(())
    })?;
    Ok(count.into_inner())
}

fn is_prime(number: u64) -> bool {
    number >= 2 && (2..).take_while(|n| n * n <= number).all(|n| !number.is_multiple_of(n))
}
