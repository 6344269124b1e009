//! What a trace shows of a pool with each strategy, and that viewers can read the file.

use std::collections::BTreeMap;
use std::thread;

use heist::trace::{EventKind, ThreadTrace, Trace};
use heist::{BuildError, Pool};
use serde_json::Value;

use crate::common::{Kind, for_every_strategy};

const WORKERS: usize = 2;

for_every_strategy! {
    every_task_begins_and_ends,
    tasks_that_wait_are_beneath_those_that_they_wait_for,
    old_events_make_room,
    while_the_pool_works,
    panics_end_a_task,
    a_file_for_viewers,
    tasks_have_names,
    tasks_have_names_in_a_bounded_pool,
    zero_is_none,
    too_many,
}

fn traced(kind: Kind, events: usize) -> Pool {
    kind.builder(WORKERS).trace(events).build().expect("a pool")
}

fn count(trace: &Trace, is_it: impl Fn(EventKind) -> bool) -> u64 {
    let kinds = trace.threads.iter().flat_map(|thread| &thread.events).map(|event| event.kind);
    kinds.filter(|&kind| is_it(kind)).count() as u64
}

/// Panics unless times increase, tasks and sleep are nested, and every park has a wake-up.
fn is_sound(thread: &ThreadTrace) {
    assert!(thread.events.is_sorted_by_key(|event| event.nanoseconds), "{thread:?}");
    if thread.lost > 0 {
        return;
    }
    let mut open = Vec::new();
    for event in &thread.events {
        match event.kind {
            EventKind::Start | EventKind::Park => open.push(event.kind),
            EventKind::End => assert_eq!(open.pop(), Some(EventKind::Start), "{thread:?}"),
            EventKind::Unpark => assert_eq!(open.pop(), Some(EventKind::Park), "{thread:?}"),
            _ => {}
        }
    }
}

fn every_task_begins_and_ends(kind: Kind) {
    const TASKS: u64 = 1_000;
    let pool = traced(kind, 100_000);
    let tasks: Vec<_> = (0..TASKS).map(|n| pool.spawn(move || n)).collect();
    assert_eq!(tasks.into_iter().map(|task| task.join().unwrap()).sum::<u64>(), 499_500);
    pool.stop();
    let (trace, stats) = (pool.trace_snapshot().expect("it was asked for"), pool.stats());
    trace.threads.iter().for_each(is_sound);
    assert!(trace.threads.iter().all(|thread| thread.lost == 0));
    assert_eq!(count(&trace, |kind| kind == EventKind::Start), TASKS);
    assert_eq!(count(&trace, |kind| kind == EventKind::End), TASKS);
    assert_eq!(
        count(&trace, |kind| matches!(kind, EventKind::Steal { .. })),
        stats.total.successful_steals
    );
    assert_eq!(count(&trace, |kind| kind == EventKind::Park), stats.total.parks);
    assert_eq!(count(&trace, |kind| kind == EventKind::Unpark), stats.total.parks);
    assert_eq!((trace.pool.as_str(), trace.workers), (kind.strategy.to_string().as_str(), WORKERS));
    let mut seats: Vec<_> = trace.threads.iter().map(|thread| thread.events[0].kind).collect();
    seats.sort_by_key(|kind| format!("{kind:?}"));
    assert_eq!(seats, [EventKind::WorkerBegin { worker: 0 }, EventKind::WorkerBegin { worker: 1 }]);
}

fn tasks_that_wait_are_beneath_those_that_they_wait_for(kind: Kind) {
    fn tree(depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let left = heist::spawn(move || tree(depth - 1));
        tree(depth - 1) + left.join().unwrap()
    }
    let pool = traced(kind, 100_000);
    assert_eq!(pool.spawn(|| tree(10)).join().unwrap(), 1024);
    pool.stop();
    let trace = pool.trace_snapshot().expect("it was asked for");
    trace.threads.iter().for_each(is_sound);
    assert_eq!(count(&trace, |kind| kind == EventKind::Start), 1024);
    assert_eq!(count(&trace, |kind| kind == EventKind::End), 1024);
}

fn old_events_make_room(kind: Kind) {
    let pool = traced(kind, 20);
    (0..1_000).for_each(|_| pool.install(|| ()));
    pool.stop();
    let trace = pool.trace_snapshot().expect("it was asked for");
    assert!(trace.threads.iter().map(|thread| thread.lost).sum::<u64>() > 1_000);
    for thread in trace.threads.iter().filter(|thread| thread.lost > 0) {
        assert_eq!(thread.events.len(), 31, "{thread:?}");
        is_sound(thread);
    }
}

fn while_the_pool_works(kind: Kind) {
    let pool = traced(kind, 30);
    thread::scope(|scope| {
        let looks = scope.spawn(|| {
            for _ in 0..300 {
                pool.trace_snapshot().expect("it was asked for").threads.iter().for_each(is_sound);
            }
        });
        while !looks.is_finished() {
            pool.spawn_batch((0..100).map(|_| || ())).join().unwrap();
        }
        looks.join().unwrap();
    });
}

fn panics_end_a_task(kind: Kind) {
    let pool = traced(kind, 1_000);
    assert!(pool.spawn(|| panic!("planned")).join().is_err());
    pool.stop();
    let trace = pool.trace_snapshot().expect("it was asked for");
    trace.threads.iter().for_each(is_sound);
    assert_eq!(count(&trace, |kind| kind == EventKind::End), 1);
}

fn zero_is_none(kind: Kind) {
    let pool = traced(kind, 0);
    pool.install(|| ());
    assert_eq!(pool.trace_snapshot(), None);
}

fn too_many(kind: Kind) {
    let error = kind.builder(1).trace(usize::MAX).build().unwrap_err();
    assert!(matches!(error, BuildError::TooManyEvents { asked: usize::MAX, .. }), "{error}");
    assert!(error.to_string().ends_with("ask for fewer"), "{error}");
}

/// Checks a file against the "Trace Event Format". Returns the number of events of each phase.
fn validate(file: &[u8]) -> BTreeMap<String, usize> {
    let file: Value = serde_json::from_slice(file).expect("it is JSON");
    assert_eq!(file["displayTimeUnit"], "ns");
    let mut kinds = BTreeMap::new();
    let mut bars: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    for event in file["traceEvents"].as_array().expect("events") {
        let kind = event["ph"].as_str().expect("every event has a phase");
        *kinds.entry(kind.to_owned()).or_default() += 1;
        let name = event["name"].as_str().expect("every event has a name");
        let track = (event["pid"].as_u64().expect("a pid"), event["tid"].as_u64().expect("a tid"));
        let when = event["ts"].as_f64().expect("a time");
        match kind {
            "M" => {
                assert!(["process_name", "thread_name"].contains(&name), "{event}");
                assert!(event["args"]["name"].is_string(), "{event}");
            }
            "X" => {
                let time = event["dur"].as_f64().expect("a bar has a length");
                assert!(when >= 0.0 && time >= 0.0, "{event}");
                bars.entry(track).or_default().push((when, when + time));
            }
            "i" => {
                assert_eq!(event["s"], "t", "a mark is of a thread: {event}");
                assert!(event["args"].is_object(), "{event}");
            }
            _ => panic!("no viewer was asked for {event}"),
        }
    }
    bars.values_mut().for_each(|bars| nest(bars));
    kinds
}

/// Panics unless the bars of one track are disjoint or nested: a viewer drops others.
fn nest(bars: &mut [(f64, f64)]) {
    bars.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let mut open: Vec<f64> = Vec::new();
    for &(start, end) in &*bars {
        // Times have three decimals, and their sums are rounded.
        open.retain(|&outer| outer > start + 0.0005);
        assert!(open.last().is_none_or(|&outer| end <= outer + 0.0005), "{start} to {end}");
        open.push(end);
    }
}

fn a_file_for_viewers(kind: Kind) {
    let builder = kind.builder(WORKERS).thread_name(|n| format!("\"{n}\"\\\n"));
    let pool = builder.trace(10_000).build().expect("a pool");
    let split = |n: u32| (0..n).map(|n| pool.spawn(move || n)).collect::<Vec<_>>();
    split(100).into_iter().for_each(|task| assert!(task.join().is_ok()));
    pool.scope(|scope| (0..10).for_each(|_| scope.spawn(|_| ())));
    let mut file = Vec::new();
    // A snapshot of a running pool: open bars end with the file.
    pool.trace_snapshot().expect("it was asked for").write_chrome(&mut file).unwrap();
    validate(&file);
    pool.stop();
    file.clear();
    pool.trace_snapshot().expect("it was asked for").write_chrome(&mut file).unwrap();
    let kinds = validate(&file);
    assert_eq!(kinds["M"], 1 + WORKERS);
    assert!(kinds["X"] >= 100, "{kinds:?}");
    assert!(kinds["i"] >= 2, "{kinds:?}");
}

/// Returns the name of each task, without its module, in the order of the names.
fn names(trace: &Trace) -> Vec<&'static str> {
    let starts = trace.threads.iter().flat_map(|thread| &thread.events);
    let starts = starts.filter(|event| event.kind == EventKind::Start);
    let short = |name: &'static str| name.split_once("trace::").expect("of this module").1;
    let mut names: Vec<_> = starts.map(|event| short(event.name.expect("a name"))).collect();
    names.sort_unstable();
    names
}

fn one() {}

fn two() {}

fn part<S>(_: &S) {}

fn waits() {
    heist::spawn(one).join().unwrap();
}

fn tasks_have_names(kind: Kind) {
    let pool = traced(kind, 10_000);
    pool.spawn(one).join().unwrap();
    pool.spawn(waits).join().unwrap();
    pool.install(two);
    pool.broadcast(|_| ());
    let closure = || pool.spawn_batch([one, one]).join().unwrap();
    closure();
    pool.scope(|scope| scope.spawn(part));
    let _ = pool.spawn(|| panic!("planned")).join();
    pool.stop();
    let trace = pool.trace_snapshot().expect("it was asked for");
    let names = names(&trace);
    let count = |name: &str| names.iter().filter(|other| **other == name).count();
    // A piece of a batch may be a task around its closures.
    assert!((4..=5).contains(&count("one")), "{names:?}");
    assert_eq!((count("two"), count("waits")), (1, 1), "{names:?}");
    assert_eq!(names.iter().filter(|name| name.starts_with("part<")).count(), 1, "{names:?}");
    // The broadcast on two workers, the scope, and the task that panics.
    let closures = names.iter().filter(|name| name.starts_with("tasks_have_names::"));
    assert!(closures.count() >= 3, "{names:?}");
    let mut file = Vec::new();
    trace.write_chrome(&mut file).unwrap();
    validate(&file);
    let file: Value = serde_json::from_slice(&file).expect("it is JSON");
    let events = file["traceEvents"].as_array().expect("events");
    let is_task = |event: &&Value| event["cat"] == "task";
    let of = |name: &str| {
        let is_it = |event: &&Value| event["name"].as_str().is_some_and(|it| it.ends_with(name));
        events.iter().filter(is_task).filter(is_it).count()
    };
    assert_eq!((of("trace::two"), of("trace::waits")), (1, 1));
    assert!(
        events
            .iter()
            .filter(|event| event["name"] == "asleep")
            .all(|event| event["cat"] == "asleep")
    );
}

/// The names are those of the closures that were spawned, not of what the pool has wrapped around them.
fn tasks_have_names_in_a_bounded_pool(kind: Kind) {
    let builder =
        kind.builder(1).trace(10_000).max_queued(2).context(|| |run: &mut dyn FnMut()| run());
    let pool = builder.build().expect("a pool");
    pool.spawn(one).join().unwrap();
    pool.try_spawn(two).expect("room").join().unwrap();
    pool.spawn(waits).join().unwrap();
    pool.stop();
    let trace = pool.trace_snapshot().expect("it was asked for");
    assert_eq!(names(&trace), ["one", "one", "two", "waits"]);
    trace.threads.iter().for_each(is_sound);
}
