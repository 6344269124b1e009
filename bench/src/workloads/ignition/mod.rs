//! The ignition workload: how soon all of a sleeping pool works on what one task splits up.

mod lamps;

use std::ops::Range;
use std::thread;
use std::time::Duration;

use harness::board::{Board, Lap};
use harness::metric;
use harness::pause::Pause;
use harness::row::{Row, Sample, nanoseconds};
use lamps::Lamps;

use crate::peers::{self, Pool, heist, kept, rayon};

const WORKERS: [usize; 4] = [2, 4, 8, 24];

/// Each takes about 100 ns: 50 ms on two cores, in which each of two dozen threads should have had
/// its turn.
const ITEMS: u64 = if cfg!(test) { 4_000 } else { 1_000_000 };

/// No task splits fewer.
const LEAF: u64 = if cfg!(test) { 10 } else { 1_000 };

/// Long enough for every thread to be asleep when the task comes.
const IDLE: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 5 });

const REFERENCE: &str = "rayon";

pub(crate) fn rows() -> Vec<Row> {
    WORKERS.map(row).into()
}

fn row(workers: usize) -> Row {
    let metrics = vec![&metric::IGNITION, &metric::TOTAL, &metric::LIT];
    let title = peers::workers(workers);
    let mut row = Row::of_pools("ignition", workers.to_string(), title, metrics);
    row.references = vec![REFERENCE];
    row.workers = Some(workers);
    row.enter(heist::Stealing::NAME, move || measure::<heist::Stealing>(workers));
    row.enter(rayon::ThreadPool::NAME, move || measure::<rayon::ThreadPool>(workers));
    row
}

/// If a worker has not run anything by the end, the first number is that of the end.
fn measure<P: Pool>(workers: usize) -> Sample {
    let pool = kept::pool::<P>(workers);
    let work = Work { pool, pause: Pause::calibrated() };
    thread::sleep(IDLE);
    let lap = Lap::begin();
    let lamps = Lamps::off();
    pool.spawn(move || work.split(lamps, 0..ITEMS));
    let total = lap.wait(P::NAME, ITEMS).time;
    let lit = lamps.lit();
    let all = lit.get(workers - 1).map_or(total, |&time| time.min(total));
    Sample::of([nanoseconds(all), nanoseconds(total), lit.len() as f64])
}

/// What every task needs.
struct Work<P: 'static> {
    pool: &'static P,
    pause: Pause,
}

impl<P> Clone for Work<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Work<P> {}

impl<P: Pool> Work<P> {
    /// Leaves the upper half to others until what is left is small; then does it.
    fn split(self, lamps: Lamps, items: Range<u64>) {
        lamps.light();
        let Range { start, mut end } = items;
        while end - start > LEAF {
            let middle = start + (end - start) / 2;
            self.pool.spawn(move || self.split(lamps, middle..end));
            end = middle;
        }
        let mut sum = 0;
        for item in start..end {
            self.pause.work();
            sum += item;
        }
        Board::get().add(end - start, sum);
    }
}
