//! The contract of idle time: a pipeline that waits for its source, its sink or a stage uses no processor
//! time at all.

use std::fs;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use heist::Pool;
use heist::pipeline::{Pipeline, Source, Steps};

use crate::common::pipeline::{Way, ways};
use crate::common::{Kind, eventually, for_every_strategy, in_child};

for_every_strategy! {
    feed_without_items,
    source_that_blocks,
    sink_that_blocks,
    stage_that_blocks,
    nobody_pulls,
}

/// A thread, whether it sleeps, and how often and for how many ticks it has run.
type Activity = (String, bool, u64);

/// Returns the activity of all threads of this process except this one.
fn activity() -> Vec<Activity> {
    let me = fs::read_link("/proc/thread-self").expect("a process");
    let tasks = fs::read_dir("/proc/self/task").expect("threads").filter_map(Result::ok);
    let others = tasks.filter(|task| Some(task.file_name().as_os_str()) != me.file_name());
    let read = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
        let switches =
            switches.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let (name, fields) = stat.rsplit_once(") ")?;
        let ticks =
            fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
        let sleeps = fields.starts_with('S');
        Some((name.to_owned(), sleeps, switches.sum::<u64>() + ticks.sum::<u64>()))
    };
    others.filter_map(read).collect()
}

/// Panics unless all threads go to sleep, and stay asleep.
fn assert_idle() {
    // A thread is idle if it sleeps and its activity does not change over a longer time. A thread that
    // waits for a processor does not sleep. How soon the threads become idle does not matter.
    let mut last = activity();
    eventually("nothing moves any more", || {
        thread::sleep(Duration::from_millis(50));
        let now = activity();
        let still = now == last && now.iter().all(|(_, sleeps, _)| *sleeps);
        last = now;
        still
    });
    thread::sleep(Duration::from_millis(200));
    assert_eq!(activity(), last, "what waits does nothing");
}

/// Blocks threads, without polling, until the test releases them.
#[derive(Clone)]
struct Stand {
    opened: Arc<Mutex<mpsc::Receiver<()>>>,
    here: Arc<AtomicUsize>,
}

impl Stand {
    fn new() -> (mpsc::Sender<()>, Self) {
        let (open, opened) = mpsc::channel();
        (open, Self { opened: Arc::new(Mutex::new(opened)), here: Arc::default() })
    }

    fn wait(&self) {
        self.here.fetch_add(1, Ordering::Release);
        // A second thread waits for the lock.
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = opened.recv();
    }

    fn has(&self, visitors: usize) {
        eventually("all have come", || self.here.load(Ordering::Acquire) >= visitors);
    }
}

/// Runs pipelines in every configuration, each on a pool of its own, and observes the process while all
/// of them wait.
fn at_rest(
    kind: Kind,
    job: impl Fn(Way, &Pool, &Stand) + Sync,
    is_so: impl Fn(&Stand),
    let_go: impl FnOnce(),
) {
    let (open, stand) = Stand::new();
    thread::scope(|scope| {
        for way in ways() {
            let (stand, job) = (stand.clone(), &job);
            scope.spawn(move || job(way, &kind.pool(2), &stand));
        }
        is_so(&stand);
        assert_idle();
        let_go();
        drop(open);
    });
}

fn run<Q, G>(way: Way, pool: &Pool, pipeline: Pipeline<Q, G>, mut sink: impl FnMut())
where
    Q: Source<Item = usize> + Send,
    G: Steps<usize>,
    G::Out: Send,
{
    way.of(pipeline).run(pool, |_| sink()).expect("an end");
}

/// The number of items that each pipeline processes before it becomes idle.
const ITEMS: usize = 30;

fn feed_without_items(kind: Kind) {
    in_child("feed", &[], || {
        let senders = Mutex::new(Vec::new());
        let delivered = AtomicUsize::new(0);
        at_rest(
            kind,
            |way, pool, _| {
                let (sender, pipeline) = Pipeline::fed(NonZero::new(ITEMS).expect("a number"));
                (0..ITEMS).for_each(|n| sender.send(n).expect("room"));
                senders.lock().expect("no panic").push(sender);
                run(way, pool, pipeline.batch(4), || _ = delivered.fetch_add(1, Ordering::Release));
            },
            |_| {
                let all = ways().count() * ITEMS;
                eventually("all is done", || delivered.load(Ordering::Acquire) == all);
            },
            || senders.lock().expect("no panic").clear(),
        );
    });
}

fn source_that_blocks(kind: Kind) {
    in_child("source", &[], || {
        at_rest(
            kind,
            |way, pool, stand| {
                let source = (0..2 * ITEMS).inspect(|n| {
                    if *n == ITEMS {
                        stand.wait();
                    }
                });
                run(way, pool, Pipeline::new(source).batch(4), || ());
            },
            |stand| stand.has(ways().count()),
            || (),
        );
    });
}

/// All other batches are complete or have not started, and the bound keeps them there.
fn sink_that_blocks(kind: Kind) {
    in_child("sink", &[], || {
        at_rest(
            kind,
            |way, pool, stand| {
                let mut results = 0;
                let pipeline = Pipeline::new(0..5 * ITEMS).batch(4).in_flight(5);
                run(way, pool, pipeline, || {
                    results += 1;
                    if results == ITEMS {
                        stand.wait();
                    }
                });
            },
            |stand| stand.has(ways().count()),
            || (),
        );
    });
}

fn stage_that_blocks(kind: Kind) {
    in_child("stage", &[], || {
        at_rest(
            kind,
            |way, pool, stand| {
                let pipeline = Pipeline::new(0..5 * ITEMS).batch(4).in_flight(5);
                let pipeline = pipeline.map(|n| {
                    if n == ITEMS {
                        stand.wait();
                    }
                });
                run(way, pool, pipeline, || ());
            },
            |stand| stand.has(ways().count()),
            || (),
        );
    });
}

fn nobody_pulls(kind: Kind) {
    in_child("results", &[], || {
        at_rest(
            kind,
            |way, pool, stand| {
                let pipeline = Pipeline::new(0..5 * ITEMS).batch(4).in_flight(5);
                let mut results = way.of(pipeline).results(pool).expect("a start");
                assert_eq!(results.by_ref().take(ITEMS).count(), ITEMS);
                stand.wait();
                assert_eq!(results.count(), 4 * ITEMS);
            },
            |stand| stand.has(ways().count()),
            || (),
        );
    });
}
