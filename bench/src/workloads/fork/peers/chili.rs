//! chili. The thread that opens a scope is one of its workers. While a scope is open, a separate thread sends
//! heartbeats.

use std::num::NonZero;

use chili::{Config, Scope, ThreadPool};

use crate::peers::kept;
use crate::workloads::fork::Fork;

pub(crate) struct Chili;

impl Fork for Chili {
    const NAME: &'static str = "chili";

    type Pool = ThreadPool;
    type Context<'h> = Scope<'h>;

    fn pool(workers: usize) -> &'static ThreadPool {
        kept::keep(Self::NAME, workers, || {
            let config = Config { thread_count: NonZero::new(workers), ..Config::default() };
            Box::leak(Box::new(ThreadPool::with_config(config)))
        })
    }

    fn run<R: Send>(pool: &ThreadPool, f: impl FnOnce(&mut Scope<'_>) -> R + Send) -> R {
        f(&mut pool.scope())
    }

    fn fib(scope: &mut Scope<'_>, n: u64) -> u64 {
        fib(scope, n)
    }

    /// The second closure runs at once, and the first one is offered to other threads, the reverse of rayon and
    /// heist. Its documentation does not say which. Programs for which the order matters have a case for each
    /// order.
    #[inline(always)]
    fn join<A, B, RA, RB>(scope: &mut Scope<'_>, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut Scope<'_>) -> RA + Send,
        B: FnOnce(&mut Scope<'_>) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        scope.join(a, b)
    }
}

/// See [`Fork::fib`].
fn fib(scope: &mut Scope<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = scope.join(move |scope| fib(scope, n - 1), move |scope| fib(scope, n - 2));
    a + b
}
