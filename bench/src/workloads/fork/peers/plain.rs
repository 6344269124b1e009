//! No library: two calls, which the compiler may optimize freely.

use crate::workloads::fork::Fork;

pub(crate) struct Plain;

impl Fork for Plain {
    const NAME: &'static str = "plain";

    type Pool = ();
    type Context<'h> = ();

    fn pool(_: usize) -> &'static () {
        &()
    }

    fn run<R: Send>(_: &(), f: impl FnOnce(&mut ()) -> R + Send) -> R {
        f(&mut ())
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
        (a(&mut ()), b(&mut ()))
    }
}

/// See [`Fork::fib`].
fn fib(n: u64) -> u64 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}
