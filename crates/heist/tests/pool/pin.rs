//! The contract of pinning: a task runs on the processor of its worker, whichever thread runs it, and a task that goes on
//! without a worker may run everywhere.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Barrier, mpsc};

use heist::topology::CpuSet;
use heist::{BuildError, Pin, Pool};

use crate::common::{Kind, WORKERS, for_every_strategy};

for_every_strategy! {
    every_worker_has_its_processor,
    more_workers_than_processors,
    a_core_that_is_handed_off_stays_on_its_processor,
    what_cannot_be_pinned,
}

/// Returns the processors on which the calling thread may run, or `None` where a thread has no such mask. A mask often has
/// processors that are not there, which are left out.
fn mask() -> Option<CpuSet> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let (mask, online): (CpuSet, CpuSet) = (list.parse().ok()?, online.parse().ok()?);
    Some(mask.as_slice().iter().copied().filter(|&cpu| online.contains(cpu)).collect())
}

/// Returns the processors of this thread, if there are at least two to choose from.
fn processors() -> Option<Vec<usize>> {
    let processors = mask().map_or_else(Vec::new, |cpus| cpus.as_slice().to_vec());
    if processors.len() < 2 {
        println!("skipped: this process cannot choose between two processors");
        return None;
    }
    Some(processors)
}

fn only(processor: usize) -> CpuSet {
    [processor].into_iter().collect()
}

/// Returns the masks of all workers of the pool, each of which runs one task.
fn masks_of(pool: &Pool) -> Vec<CpuSet> {
    let gate = Arc::new(Barrier::new(pool.workers()));
    let tasks: Vec<_> = (0..pool.workers())
        .map(|_| {
            let gate = Arc::clone(&gate);
            // No worker runs two of these tasks: each blocks its worker until all have started.
            pool.spawn(move || (gate.wait(), mask().expect("a mask")).1)
        })
        .collect();
    tasks.into_iter().map(|task| task.join().expect("a mask")).collect()
}

fn every_worker_has_its_processor(kind: Kind) {
    let Some(all) = processors() else { return };
    let two = BTreeSet::from([only(all[0]), only(all[1])]);
    let pool = kind.builder(2).pin(Pin::InOrder).build().expect("a pool");
    assert_eq!(masks_of(&pool).into_iter().collect::<BTreeSet<_>>(), two);
    let backwards = Pin::Processors(vec![all[1], all[0]]);
    let pool = kind.builder(2).pin(backwards).build().expect("a pool");
    assert_eq!(masks_of(&pool).into_iter().collect::<BTreeSet<_>>(), two);
    for pin in [Pin::Compact, Pin::Spread] {
        let pool = kind.builder(2).pin(pin).build().expect("a pool");
        let masks: BTreeSet<_> = masks_of(&pool).into_iter().collect();
        assert_eq!(masks.len(), 2, "a processor for each worker: {masks:?}");
        assert!(masks.iter().all(|mask| mask.len() == 1 && all.contains(&mask.as_slice()[0])));
    }
    let pool = kind.builder(2).pin(Pin::None).build().expect("a pool");
    assert!(masks_of(&pool).iter().all(|mask| mask.as_slice() == all));
}

/// Workers beyond the end of the list start at its beginning again.
fn more_workers_than_processors(kind: Kind) {
    let Some(all) = processors() else { return };
    for workers in WORKERS {
        let list = Pin::Processors(vec![all[1], all[0], all[1]]);
        let pool = kind.builder(workers).pin(list).build().expect("a pool");
        let mut masks = masks_of(&pool);
        masks.sort_unstable();
        let mut expected: Vec<_> =
            [1, 0, 1, 1].into_iter().take(workers).map(|n| only(all[n])).collect();
        expected.sort_unstable();
        assert_eq!(masks, expected);
    }
}

/// The only worker's task waits for another pool, and its core goes to a thread that runs the next task. When the wait is
/// over, the first task goes on without a core, and is not bound to the processor that the other one uses.
fn a_core_that_is_handed_off_stays_on_its_processor(kind: Kind) {
    let Some(all) = processors() else { return };
    let elsewhere = kind.pool(1);
    let pool = kind.builder(1).pin(Pin::Processors(vec![all[1]])).build().expect("a pool");
    let (open, opened) = mpsc::channel::<()>();
    let slow = elsewhere.spawn(move || _ = opened.recv());
    let (go_on, resumed) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let first = pool.spawn(move || {
        begin.send(()).expect("a test that waits");
        let before = mask().expect("a mask");
        slow.join().expect("a result");
        let without_core = mask().expect("a mask");
        // The second task ends after this, so that the worker is not free before.
        drop(go_on);
        (before, without_core)
    });
    begun.recv().expect("a task that has started");
    let second = pool.spawn(move || {
        let handed = mask().expect("a mask");
        drop(open);
        let _ = resumed.recv();
        handed
    });
    let (before, without_core) = first.join().expect("masks");
    assert_eq!(before, only(all[1]));
    assert_eq!(without_core.as_slice(), all);
    assert_eq!(second.join().expect("a mask"), only(all[1]));
    // Whichever thread has the core now, it is on that processor.
    for _ in 0..10 {
        assert_eq!(masks_of(&pool), [only(all[1])]);
    }
}

fn what_cannot_be_pinned(kind: Kind) {
    let Some(all) = mask() else { return };
    let empty = kind.builder(1).pin(Pin::Processors(vec![])).build();
    assert!(matches!(empty, Err(BuildError::NoProcessors)), "{empty:?}");
    let missing = (0..).find(|&cpu| !all.contains(cpu)).expect("a number that is not there");
    for missing in [missing, usize::MAX] {
        let list = Pin::Processors(vec![all.as_slice()[0], missing]);
        match kind.builder(1).pin(list).build() {
            Err(error @ BuildError::ProcessorNotAllowed { .. }) => {
                assert!(error.to_string().contains(&all.to_string()), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}
