//! heist, in a pool of any strategy.

use std::marker::PhantomData;

use crate::peers::heist::{Choice, Heist as Pool, WorkStealing};
use crate::peers::kept;
use crate::workloads::fork::Fork;

pub(crate) struct Ours<C>(PhantomData<C>);

pub(crate) type Heist = Ours<WorkStealing>;

impl<C: Choice> Fork for Ours<C> {
    const NAME: &'static str = C::NAME;

    type Pool = Pool<C>;
    type Context<'h> = ();

    fn pool(workers: usize) -> &'static Pool<C> {
        kept::pool(workers)
    }

    fn run<R: Send>(pool: &Pool<C>, f: impl FnOnce(&mut ()) -> R + Send) -> R {
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
        heist::join(move || a(&mut ()), move || b(&mut ()))
    }
}

/// See [`Fork::fib`].
fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = heist::join(move || fib(n - 1), move || fib(n - 2));
    a + b
}
