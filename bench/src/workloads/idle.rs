//! The idle workload: the processor time that a pool takes while it has nothing to do.

use std::thread;
use std::time::{Duration, Instant};

use harness::metric;
use harness::row::{Row, Sample, nanoseconds};
use harness::target::{Target, Than};
use harness::usage;

use harness::board::Lap;

use crate::peers::shape::{self, Shape};
use crate::peers::{Pool, condvar, heist, kept, rayon};
#[cfg(feature = "peers")]
use crate::peers::{channel, threadpool, tokio};

const WORKERS: usize = 2;

/// The number of tasks that the pool has run just before.
const BURST: u64 = if cfg!(test) { 100 } else { 10_000 };

/// The pause between the end of the burst and the measurement. A thread that is still busy then was not about to
/// fall asleep.
const GRACE: Duration = Duration::from_millis(5);

/// The duration of the measurement.
const WATCH: Duration = Duration::from_millis(if cfg!(test) { 5 } else { 1_000 });

/// The limit in milliseconds of processor time per second.
const LIMIT: f64 = 0.15;

/// Returns the cases, or none if the system does not report resource usage.
pub(crate) fn rows() -> Vec<Row> {
    if !usage::KNOWN {
        return Vec::new();
    }
    let title = "a second after a burst".into();
    let mut row = Row::of_pools("idle", "after-burst".into(), title, vec![&metric::CPU]);
    enter::<heist::Stealing>(&mut row);
    enter::<heist::Locked>(&mut row);
    enter::<heist::Global>(&mut row);
    enter::<rayon::ThreadPool>(&mut row);
    #[cfg(feature = "peers")]
    {
        enter::<tokio::Runtime>(&mut row);
        enter::<threadpool::ThreadPool>(&mut row);
        enter::<channel::Workers>(&mut row);
    }
    enter::<condvar::Workers>(&mut row);
    // The processor time of this program itself. If the kept pools did not sleep, this entry would show it.
    row.enter("no pool", watch);
    row.targets = vec![Target {
        of: heist::Stealing::NAME,
        metric: &metric::CPU,
        than: Than::Nothing,
        at_most: LIMIT,
    }];
    vec![row]
}

fn enter<P: Pool>(row: &mut Row) {
    row.enter(P::NAME, || {
        let pool = kept::pool::<P>(WORKERS);
        let lap = Lap::begin();
        shape::start::<P, BURST>(pool, Shape::Outside);
        lap.wait(P::NAME, BURST);
        watch()
    });
}

fn watch() -> Sample {
    thread::sleep(GRACE);
    let (start, before) = (Instant::now(), usage::look());
    thread::sleep(WATCH);
    let used = usage::look() - before;
    Sample::of([nanoseconds(used.cpu) / start.elapsed().as_secs_f64()])
}
