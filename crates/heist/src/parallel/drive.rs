//! How a loop is shared: in halves, when somebody wants work and there is enough left to be worth it.
//!
//! A loop that nobody takes part in is one loop, in blocks between which it looks whether somebody
//! does. How long an item takes is not known, and decides everything: whether to wake a worker
//! (ten microseconds) or to let it sleep, and how long a block is. So the first few items are
//! timed, unless there are so few in all that each is likely to be long.

use std::time::Instant;

use super::Pieces;
use crate::api::join::join;
use crate::fork::job;
use crate::parallel::external::{self, Offer, Visit};
use crate::worker::current::with_worker;

/// The first items that are timed are one part in this many of each worker's share: what is lost if all of
/// them are long and nobody helps meanwhile.
const PROBE: usize = 32;

// In nanoseconds, as all times here.

/// Less than this is not shared with a worker that is looking for work: to hand it over and wait for
/// it takes a good part of a microsecond.
const SHARE: f64 = 2_000.0;
/// Less than this is not shared with a worker that sleeps: to wake it takes half of this.
const WAKE: f64 = 20_000.0;
/// Between two looks. A guess: a hundred times what a look takes, and a fraction of what is shared.
const BLOCK: f64 = 3_000.0;
/// A thread outside of the pool leaves it to the pool if it will take longer, and sleeps.
const LEAVE: f64 = 100_000.0;

/// What a loop does.
pub(super) trait Work: Sync {
    type Pieces: Pieces;
    type Output: Send;

    /// Some of the items, one after the other.
    fn each(&self, pieces: Self::Pieces) -> Self::Output;

    /// The results of neighbours.
    fn combine(&self, left: Self::Output, right: Self::Output) -> Self::Output;
}

/// The results of all items, combined in their order. Fewer than `min` are never shared.
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

/// How long an item takes.
#[derive(Clone, Copy)]
struct Pace(f64);

impl Pace {
    /// For ever, for all we know.
    const UNKNOWN: Self = Self(f64::INFINITY);

    fn is_known(self) -> bool {
        self.0.is_finite()
    }

    /// So many items.
    fn of(self, items: usize) -> f64 {
        self.0 * items as f64
    }

    /// So many, and at least one, take that long.
    fn items(self, time: f64) -> usize {
        ((time / self.0) as usize).max(1)
    }
}

/// What is left of a loop, and what has been done.
struct Rest<'w, W: Work> {
    work: &'w W,
    min: usize,
    left: W::Pieces,
    done: Option<W::Output>,
    pace: Pace,
}

impl<W: Work> Rest<'_, W> {
    /// On a thread of a pool.
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

    /// On a thread of no pool: it takes part in what is short, and leaves to the pool what is long.
    /// It offers nothing while what it has offered before lies there.
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

    /// Times the first items, if that was not done and there are enough of them.
    fn probe(self, start: Instant, workers: usize) -> Self {
        let items = self.left.len() / (PROBE * workers);
        if self.pace.is_known() || items == 0 { self } else { self.block(start, items) }
    }

    /// Does the first items, or all.
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
