//! What is done with the items of a batch, on a worker.

use std::cell::Cell;
use std::error::Error;
use std::mem;

use super::sealed::Sealed;

/// What the user's code has to say against an item.
pub(super) type Complaint = Box<dyn Error + Send + Sync>;

/// The number of the stage that has failed.
pub(super) type Mark = Cell<usize>;

/// What is done on the pool with items of type `T`: one or more stages, each on the results of the one before.
///
/// Made by [`Pipeline::map`](super::Pipeline::map) and its kind; nothing else can be one.
pub trait Steps<T>: Send + Sync + Sealed {
    /// What comes out.
    type Out;

    /// How many stages there are.
    #[doc(hidden)]
    const STAGES: usize;

    /// Takes the items out of the batch, and gives what comes of each to `out`. The mark says which stage it was that
    /// failed or panicked.
    #[doc(hidden)]
    fn apply(
        &self,
        batch: &mut Vec<T>,
        mark: &Mark,
        out: &mut impl FnMut(Self::Out) -> Result<(), Complaint>,
    ) -> Result<(), Complaint>;
}

/// Leaves a mark if it is dropped, which is to say that something has panicked.
struct Here<'m>(&'m Mark, usize);

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

impl Here<'_> {
    /// Calls what may panic. It costs nothing if it does not.
    #[inline(always)]
    fn calls<R>(self, f: impl FnOnce() -> R) -> R {
        let result = f();
        mem::forget(self);
        result
    }
}

/// No stage: what goes in comes out.
#[derive(Debug)]
pub struct Same;

impl Sealed for Same {}

impl<T> Steps<T> for Same {
    type Out = T;

    const STAGES: usize = 0;

    #[inline]
    fn apply(
        &self,
        batch: &mut Vec<T>,
        _: &Mark,
        out: &mut impl FnMut(T) -> Result<(), Complaint>,
    ) -> Result<(), Complaint> {
        batch.drain(..).try_for_each(out)
    }
}

/// See [`Pipeline::map`](super::Pipeline::map).
#[derive(Debug)]
pub struct Map<G, F> {
    pub(super) before: G,
    pub(super) f: F,
}

impl<G, F> Sealed for Map<G, F> {}

impl<T, G, F, U> Steps<T> for Map<G, F>
where
    G: Steps<T>,
    F: Fn(G::Out) -> U + Send + Sync,
{
    type Out = U;

    const STAGES: usize = G::STAGES + 1;

    #[inline]
    fn apply(
        &self,
        batch: &mut Vec<T>,
        mark: &Mark,
        out: &mut impl FnMut(U) -> Result<(), Complaint>,
    ) -> Result<(), Complaint> {
        self.before
            .apply(batch, mark, &mut |item| out(Here(mark, Self::STAGES).calls(|| (self.f)(item))))
    }
}

/// See [`Pipeline::try_map`](super::Pipeline::try_map).
#[derive(Debug)]
pub struct TryMap<G, F> {
    pub(super) before: G,
    pub(super) f: F,
}

impl<G, F> Sealed for TryMap<G, F> {}

impl<T, G, F, U, E> Steps<T> for TryMap<G, F>
where
    G: Steps<T>,
    F: Fn(G::Out) -> Result<U, E> + Send + Sync,
    E: Into<Complaint>,
{
    type Out = U;

    const STAGES: usize = G::STAGES + 1;

    #[inline]
    fn apply(
        &self,
        batch: &mut Vec<T>,
        mark: &Mark,
        out: &mut impl FnMut(U) -> Result<(), Complaint>,
    ) -> Result<(), Complaint> {
        self.before.apply(batch, mark, &mut |item| {
            let here = Here(mark, Self::STAGES);
            match here.calls(|| (self.f)(item).map_err(Into::into)) {
                Ok(result) => out(result),
                Err(complaint) => {
                    mark.set(Self::STAGES);
                    Err(complaint)
                }
            }
        })
    }
}

/// See [`Pipeline::map_batch`](super::Pipeline::map_batch).
#[derive(Debug)]
pub struct MapBatch<F> {
    pub(super) f: F,
}

impl<F> Sealed for MapBatch<F> {}

impl<T, F, U> Steps<T> for MapBatch<F>
where
    F: Fn(&mut Vec<T>) -> U + Send + Sync,
{
    type Out = U;

    const STAGES: usize = 1;

    #[inline]
    fn apply(
        &self,
        batch: &mut Vec<T>,
        mark: &Mark,
        out: &mut impl FnMut(U) -> Result<(), Complaint>,
    ) -> Result<(), Complaint> {
        out(Here(mark, Self::STAGES).calls(|| (self.f)(batch)))
    }
}
