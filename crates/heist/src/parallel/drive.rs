//! How a loop is shared: in halves, when another worker wants work and enough is left to be worth it.
//!
//! A loop that no other worker joins is one loop in blocks, between which it checks whether work is wanted. The
//! time that an item takes is not known, and everything depends on it: whether to wake a worker (ten
//! microseconds) or to let it sleep, and how long a block is. So the first few items are timed, unless there are
//! so few in all that each of them is likely to be long.

use std::time::Instant;

use super::Pieces;
use crate::api::join::join;
use crate::fork::job;
use crate::parallel::external::{self, Offer, Visit};
use crate::worker::current::with_worker;

/// The first items, which are timed, are one part in this many of each worker's share. That much is lost if all
/// of them are long and no worker helps meanwhile.
const PROBE: usize = 32;

// All times here are in nanoseconds.

/// Less work than this is not shared with a worker that is looking for work: to hand it over and to wait for it
/// takes a good part of a microsecond.
const SHARE: f64 = 2_000.0;
/// Less work than this is not shared with a worker that sleeps: to wake it takes half of this.
const WAKE: f64 = 20_000.0;
/// The time of a block, between two looks at the demand. A guess: a hundred times as long as a look, and a
/// fraction of what is shared.
const BLOCK: f64 = 3_000.0;
/// An external thread moves a loop that will take longer than this to the pool, and sleeps.
const LEAVE: f64 = 100_000.0;

/// What a loop does with its items.
pub(super) trait Work: Sync {
    type Pieces: Pieces;
    type Output: Send;

    /// Processes some of the items, in order.
    fn each(&self, pieces: Self::Pieces) -> Self::Output;

    /// Combines the results of two neighbouring pieces.
    fn combine(&self, left: Self::Output, right: Self::Output) -> Self::Output;
}

/// Runs a loop and returns the results of all items, combined in their order. Fewer than `min` items are never
/// shared.
pub(super) fn run<W: Work>(work: &W, pieces: W::Pieces, min: usize) -> W::Output {
    let min = min.max(1);
    if pieces.len() <= min {
        return work.each(pieces);
    }
    go_on(work, pieces, Pace::UNKNOWN, min)
}

fn go_on<W: Work>(work: &W, pieces: W::Pieces, pace: Pace, min: usize) -> W::Output {
    let rest = Rest { work, min, left: pieces, done: None, pace };
    if job::is_open() { rest.inside() } else { rest.outside(None) }
}

/// The time that an item takes, in nanoseconds.
#[derive(Clone, Copy)]
struct Pace(f64);

impl Pace {
    /// The time before it was measured: assumed to be infinite.
    const UNKNOWN: Self = Self(f64::INFINITY);

    fn is_known(self) -> bool {
        self.0.is_finite()
    }

    /// Returns the time that this many items take.
    fn of(self, items: usize) -> f64 {
        self.0 * items as f64
    }

    /// Returns how many items, at least one, take that long.
    fn items(self, time: f64) -> usize {
        ((time / self.0) as usize).max(1)
    }
}

/// What is left of a loop, and the result so far.
struct Rest<'w, W: Work> {
    work: &'w W,
    min: usize,
    left: W::Pieces,
    done: Option<W::Output>,
    pace: Pace,
}

impl<W: Work> Rest<'_, W> {
    /// Runs the loop on a thread of a pool.
    fn inside(mut self) -> W::Output {
        let workers = with_worker(|worker| worker.workers()).unwrap_or(1);
        if workers == 1 {
            return self.finish();
        }
        self = self.probe(Instant::now(), workers);
        loop {
            let time = self.pace.of(self.left.len());
            if self.left.len() <= self.min || time < SHARE {
                return self.finish();
            }
            if job::is_demanded() && (time >= WAKE || is_somebody_up()) {
                let Self { work, min, left, done, pace } = self;
                let (left, right) = halve(left);
                let (left, right) =
                    join(|| go_on(work, left, pace, min), || go_on(work, right, pace, min));
                return add(work, done, work.combine(left, right));
            }
            let items = self.pace.items(BLOCK);
            self = self.block(Instant::now(), items);
        }
    }

    /// Runs the loop on an external thread: it takes part in a short loop, and moves a long one to the pool. It
    /// offers nothing while its last offer has not been taken.
    fn outside(mut self, offer: Option<&Offer<'_>>) -> W::Output {
        let workers = external::workers();
        if workers == 1 {
            return self.finish();
        }
        let visit = Visit::begin();
        self = self.probe(visit.start, workers);
        if self.pace.of(self.left.len()) < SHARE {
            return self.finish();
        }
        loop {
            let time = self.pace.of(self.left.len());
            if self.left.len() <= self.min || time < SHARE {
                let output = self.finish();
                visit.end_alone();
                return output;
            }
            if time > LEAVE {
                return external::install(|| self.inside());
            }
            if offer.is_none_or(Offer::is_taken) && visit.is_worth(time, WAKE) {
                let Self { work, min, left, done, pace } = self;
                let (left, right) = halve(left);
                let rest = Self { work, min, left, done: None, pace };
                let right = || go_on(work, right, pace, min);
                let (left, right) = external::join(|offer| rest.outside(Some(offer)), right);
                return add(work, done, work.combine(left, right));
            }
            let items = self.pace.items(BLOCK);
            self = self.block(Instant::now(), items);
        }
    }

    /// Times the first items, if that was not done before and there are enough of them.
    fn probe(self, start: Instant, workers: usize) -> Self {
        let items = self.left.len() / (PROBE * workers);
        if self.pace.is_known() || items == 0 { self } else { self.block(start, items) }
    }

    /// Processes the first `items`, or all.
    fn block(self, start: Instant, items: usize) -> Self {
        let Self { work, min, left, done, .. } = self;
        let items = items.min(left.len());
        let (now, left) = left.split_at(items);
        let done = add(work, done, work.each(now));
        let pace = Pace(external::nanoseconds(start.elapsed()) / items as f64);
        Self { work, min, left, done: Some(done), pace }
    }

    fn finish(self) -> W::Output {
        match self.done {
            Some(done) if self.left.len() == 0 => done,
            done => add(self.work, done, self.work.each(self.left)),
        }
    }
}

fn halve<P: Pieces>(pieces: P) -> (P, P) {
    let middle = pieces.len() / 2;
    pieces.split_at(middle)
}

fn add<W: Work>(work: &W, done: Option<W::Output>, result: W::Output) -> W::Output {
    match done {
        None => result,
        Some(done) => work.combine(done, result),
    }
}

fn is_somebody_up() -> bool {
    with_worker(|worker| worker.has_searcher()).unwrap_or(false)
}
