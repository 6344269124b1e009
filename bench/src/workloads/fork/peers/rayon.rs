//! rayon.

use rayon::ThreadPool;

use crate::peers::{Pool, kept};
use crate::workloads::fork::Fork;

pub(crate) struct Rayon;

impl Fork for Rayon {
    const NAME: &'static str = ThreadPool::NAME;

    type Pool = ThreadPool;
    type Context<'h> = ();

    fn pool(workers: usize) -> &'static ThreadPool {
        kept::pool(workers)
    }

    fn run<R: Send>(pool: &ThreadPool, f: impl FnOnce(&mut ()) -> R + Send) -> R {
        pool.install(move || f(&mut ()))
    }

    fn fib((): &mut (), n: u64) -> u64 {
        fib(n)
    }

    #[inline(always)]
    fn join<A, B, RA, RB>(_: &mut (), a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut ()) -> RA + Send,
        B: FnOnce(&mut ()) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        rayon::join(move || a(&mut ()), move || b(&mut ()))
    }
}

/// See [`Fork::fib`].
fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = rayon::join(move || fib(n - 1), move || fib(n - 2));
    a + b
}
