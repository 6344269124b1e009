//! How a loop is shared: in halves, when another worker wants work and enough is left to be worth it.
//!
//! A loop that no other worker joins is one loop in blocks, between which it checks whether work is wanted. The
//! time that an item takes is not known, and everything depends on it: whether to wake a worker (ten
//! microseconds) or to let it sleep, and how long a block is. So the first few items are timed, unless there are
//! so few in all that each of them is likely to be long. Each block is timed as well: its items may take longer than
//! those before, and then the rest is shared.

use super::Pieces;
use super::pace::{Pace, round};
use crate::api::global;
use crate::api::join::fork_loop;
use crate::fork::job;
use crate::parallel::external::{self, Alone};
use crate::sync::{Mutex, Ticks, lock};
use crate::worker::current::with_worker;
use crate::worker::guest::Offers;

/// The first items, which are timed, are one part in this many of each worker's share. That much is lost if all
/// of them are long and no worker helps meanwhile.
const PROBE: usize = 32;

/// If the first items are at least this many, a few of them are timed before the others.
const MANY_FIRST: usize = 1_024;
/// So many.
const FEW_FIRST: usize = 64;
/// No more than this are timed then, however long the loop is.
const MOST_FIRST: usize = 1 << 16;

// All times here are in nanoseconds.

/// The few first items must take so long that the clock's own time does not matter.
const CERTAIN: f64 = 1_000.0;
/// Less work than this is not shared with a worker that is looking for work: to hand it over and to wait for it
/// takes about a microsecond on processors that are near each other, and more on others.
const SHARE: f64 = 4_000.0;
/// Less work than this is not shared with a worker that sleeps: to wake it takes half of this.
const WAKE: f64 = 20_000.0;

/// What a loop does with its items.
pub(super) trait Work: Sync {
    type Pieces: Pieces;
    type Output: Send;

    /// Processes some of the items, in order.
    fn each(&self, pieces: Self::Pieces) -> Self::Output;

    /// Combines the results of two neighbouring pieces.
    fn combine(&self, left: Self::Output, right: Self::Output) -> Self::Output;

    /// Processes the items that come after those of a result, and returns the result of all of them.
    #[inline]
    fn more(&self, done: Self::Output, pieces: Self::Pieces) -> Self::Output {
        self.combine(done, self.each(pieces))
    }

    /// Returns whether the loop has ended early, so that nothing is to be done with the items that are left.
    #[inline]
    fn is_over(&self, _left: &Self::Pieces) -> bool {
        false
    }
}

/// Runs a loop and returns the results of all items, combined in their order. Fewer than `min` items are never
/// shared.
pub(super) fn run<W: Work>(work: &W, pieces: W::Pieces, min: usize) -> W::Output {
    let min = min.max(1);
    if pieces.len() <= min {
        return work.each(pieces);
    }
    let (pace, wake) = (Pace::UNKNOWN, WAKE);
    let rest = Rest { work, min, left: pieces, done: None, pace, wake, looked: None };
    job::enter(|| rest.run())
}

/// What is left of a loop, and the result so far.
struct Rest<'w, W: Work> {
    work: &'w W,
    min: usize,
    left: W::Pieces,
    /// The result of the items before those that are left.
    done: Option<W::Output>,
    pace: Pace,
    /// Less work than this is not shared with a worker that sleeps.
    wake: f64,
    /// When the last block ended.
    looked: Option<Ticks>,
}

impl<W: Work> Rest<'_, W> {
    fn run(self) -> W::Output {
        if job::is_open() { self.inside() } else { self.outside() }
    }

    /// Runs the loop on a thread of a pool.
    fn inside(mut self) -> W::Output {
        let workers = with_worker(|worker| worker.workers()).unwrap_or(1);
        if workers == 1 && !job::is_controlled() {
            return self.finish();
        }
        job::stop_point();
        self = self.probe(Ticks::now, workers);
        loop {
            // Before what is left is shared: whoever takes a half of it would share that in turn.
            job::stop_point();
            if self.left.len() <= self.min || self.work.is_over(&self.left) {
                return self.finish();
            }
            let time = self.pace.of(self.left.len());
            if time >= SHARE && job::is_demanded() && (time >= self.wake || is_somebody_up()) {
                let (work, first) = (self.work, FirstHalf::new());
                let (left, right) = self.halve();
                let ((), right) = fork_loop(|| first.end(left.run()), || right.after(&first).run());
                return first.combine(work, right);
            }
            let items = self.pace.block(self.left.len());
            if items == self.left.len() {
                return self.finish();
            }
            self = self.block(Ticks::now, items);
        }
    }

    /// Runs the loop on an external thread: alone if it is short, else as a guest of the global pool.
    fn outside(mut self) -> W::Output {
        let workers = external::workers();
        if workers == 1 && !job::is_controlled() {
            return self.finish();
        }
        let alone = Alone::begin();
        self = self.probe(|| alone.start, workers);
        // Whether the loop is long enough to count together with those after it.
        let mut counts = false;
        loop {
            job::stop_point();
            let time = self.pace.of(self.left.len());
            counts |= time >= SHARE;
            let items = self.pace.block(self.left.len());
            let is_last = self.left.len() <= self.min || items == self.left.len();
            if is_last || self.work.is_over(&self.left) {
                let output = self.finish();
                if counts {
                    alone.end();
                }
                return output;
            }
            if time >= SHARE && alone.is_worth_a_visit(time, WAKE) {
                self.wake = WAKE - alone.before;
                return global::outside(Offers::AtOnce, || self.inside());
            }
            self = self.block(Ticks::now, items);
        }
    }

    /// Times the first items, if that was not done before and there are enough of them.
    fn probe(self, start: impl FnOnce() -> Ticks, workers: usize) -> Self {
        let items = round(self.left.len() / (PROBE * workers));
        if self.pace.is_known() || items == 0 {
            return self;
        }
        if items < MANY_FIRST {
            return self.block(start, items);
        }
        // Nobody helps with the first items. If a few of them take long, their time is known well enough.
        let rest = self.block(start, FEW_FIRST);
        let is_certain = rest.pace.of(FEW_FIRST) >= CERTAIN;
        if is_certain { rest } else { rest.block(Ticks::now, (items - FEW_FIRST).min(MOST_FIRST)) }
    }

    /// Processes the first `items`, and times them: since the last block, or else since `start`.
    fn block(self, start: impl FnOnce() -> Ticks, items: usize) -> Self {
        let Self { work, min, left, done, wake, looked, .. } = self;
        let start = looked.unwrap_or_else(start);
        let (now, left) = left.split_at(items);
        let done = go_on(work, done, now);
        let end = Ticks::now();
        let pace = Pace::measured(end.since(start), items);
        Self { work, min, left, done: Some(done), pace, wake, looked: Some(end) }
    }

    fn finish(self) -> W::Output {
        match self.done {
            Some(done) if self.left.len() == 0 => done,
            done => go_on(self.work, done, self.left),
        }
    }

    /// Divides what is left. The first half goes on with the result so far.
    fn halve(self) -> (Self, Self) {
        let Self { work, min, left, done, pace, .. } = self;
        let middle = left.len() / 2;
        let (left, right) = left.split_at(middle);
        let rest = |left, done| Self { work, min, left, done, pace, wake: WAKE, looked: None };
        (rest(left, done), rest(right, None))
    }

    /// Goes on with the result of the first half, if that has ended.
    fn after(self, first: &FirstHalf<W::Output>) -> Self {
        Self { done: first.take(), ..self }
    }
}

/// Processes items that come after those of the result so far.
#[inline]
fn go_on<W: Work>(work: &W, done: Option<W::Output>, pieces: W::Pieces) -> W::Output {
    match done {
        None => work.each(pieces),
        Some(done) => work.more(done, pieces),
    }
}

/// The result of the first half of a loop, until the second half takes it.
///
/// If the first half has ended when the second one begins, as it has unless another thread helps, the second one goes on with
/// its result. So two results are combined only if the halves were processed at the same time.
struct FirstHalf<T>(Mutex<Option<T>>);

impl<T> FirstHalf<T> {
    fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The first half has ended.
    fn end(&self, result: T) {
        *lock(&self.0) = Some(result);
    }

    fn take(&self) -> Option<T> {
        lock(&self.0).take()
    }

    /// Returns the result of both halves, which have ended.
    fn combine<W: Work<Output = T>>(self, work: &W, right: T) -> T {
        match self.take() {
            Some(left) => work.combine(left, right),
            None => right,
        }
    }
}

fn is_somebody_up() -> bool {
    with_worker(|worker| worker.has_searcher()).unwrap_or(false)
}
