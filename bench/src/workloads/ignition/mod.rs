//! The ignition workload: how soon all workers of a sleeping pool work on what one task splits.

mod first_tasks;

use std::ops::Range;
use std::thread;
use std::time::Duration;

use first_tasks::FirstTasks;
use harness::board::{Board, Lap};
use harness::metric;
use harness::pause::Pause;
use harness::row::{Row, Sample, nanoseconds};

use crate::peers::{self, Pool, heist, kept, rayon};

const WORKERS: [usize; 4] = [2, 4, 8, 24];

/// The number of items of about 100 ns each: 50 ms on two processors, in which each of two dozen threads should
/// have had its turn.
const ITEMS: u64 = if cfg!(test) { 4_000 } else { 1_000_000 };

/// The sequential cutoff: no task splits fewer items.
const LEAF: u64 = if cfg!(test) { 10 } else { 1_000 };

/// A pause that is long enough for every thread to be asleep when the task comes.
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

/// Measures once. If some worker has run nothing by the end, the first value is the total time.
fn measure<P: Pool>(workers: usize) -> Sample {
    let pool = kept::pool::<P>(workers);
    let work = Work { pool, pause: Pause::calibrated() };
    thread::sleep(IDLE);
    let lap = Lap::begin();
    let first_tasks = FirstTasks::begin();
    pool.spawn(move || work.split(first_tasks, 0..ITEMS));
    let total = lap.wait(P::NAME, ITEMS).time;
    let lit = first_tasks.times();
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
    /// Spawns the upper half as a task until the rest is small, then works on the rest.
    fn split(self, first_tasks: FirstTasks, items: Range<u64>) {
        first_tasks.note();
        let Range { start, mut end } = items;
        while end - start > LEAF {
            let middle = start + (end - start) / 2;
            self.pool.spawn(move || self.split(first_tasks, middle..end));
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
