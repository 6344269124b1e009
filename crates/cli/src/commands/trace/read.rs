//! Reads a trace file: what each thread of each pool did.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Deserialize;
use serde_json::error::Category;

use crate::commands::sim::record::SimRecord;
use crate::exit::{Exit, Failure};
use crate::file;

/// A pool in a trace file.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The name in the file: `heist 1: work stealing, 2 workers`.
    pub(super) name: String,
    pub(super) threads: BTreeMap<u64, Thread>,
    /// The names of the tasks, which [`Event::name`] refers to.
    pub(super) names: Names,
}

/// The names of tasks, each of them once.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) list: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    /// Returns the place of a name in the list.
    pub(super) fn place(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        self.list.push(name.to_owned());
        self.places.insert(name.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }
}

/// A thread of a pool.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// The number of events that are not in the file, because newer ones have overwritten them.
    pub(super) lost: u64,
    /// In no particular order.
    pub(super) events: Vec<Event>,
}

/// Something that a thread did, with its time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at: u64,
    pub(super) what: What,
    /// The name of a task, if the file has one: its place in [`Pool::names`].
    pub(super) name: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// It ran a task for this many nanoseconds.
    Task(u64),
    /// It slept for this many nanoseconds.
    Sleep(u64),
    Steal,
    /// It published this many jobs.
    Publish(u64),
    WorkerBegin(usize),
    WorkerEnd,
    Other,
}

#[derive(Deserialize)]
struct File<'f> {
    #[serde(borrow, rename = "traceEvents")]
    events: Vec<Line<'f>>,
}

#[derive(Deserialize)]
struct Line<'f> {
    #[serde(borrow)]
    name: Cow<'f, str>,
    /// The category of a bar. Older traces have none: there, the bar of a task has the name `task`.
    #[serde(borrow, default, rename = "cat")]
    category: Cow<'f, str>,
    #[serde(rename = "pid")]
    pool: u64,
    #[serde(rename = "tid")]
    thread: u64,
    #[serde(rename = "ts")]
    microseconds: f64,
    #[serde(default, rename = "dur")]
    duration: f64,
    #[serde(default)]
    args: Args,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Args {
    name: String,
    lost: u64,
    tasks: u64,
    worker: usize,
}

/// Reads a trace that `heist trace`, `HEIST_TRACE` or `Trace::write_chrome` has written.
pub(super) fn read(path: &Path) -> Result<Vec<Pool>, Failure> {
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, error.to_string()))?;
    parse(path, &bytes)
}

/// Reads a trace from the bytes of a file.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Pool>, Failure> {
    let foreign = "it is a trace, but heist has not written it".to_owned();
    let lines = match serde_json::from_slice::<File<'_>>(bytes) {
        Ok(file) => file.events,
        Err(error) => {
            return Err(match error.classify() {
                Category::Data if file::is_trace(bytes) => unreadable(path, foreign),
                Category::Data => not_a_trace(path, bytes),
                _ => unreadable(path, format!("it is not JSON: {error}")),
            });
        }
    };
    let pools = pools(lines);
    let is_ours = |pool: &Pool| pool.name.starts_with("heist ");
    if pools.is_empty() || !pools.iter().all(is_ours) {
        return Err(unreadable(path, foreign));
    }
    Ok(pools)
}

fn pools(lines: Vec<Line<'_>>) -> Vec<Pool> {
    let mut pools: BTreeMap<u64, Pool> = BTreeMap::new();
    for line in lines {
        let pool = pools.entry(line.pool).or_default();
        // A bar, which has a category, may have any name.
        let is_metadata = |name| line.category.is_empty() && line.name == name;
        if is_metadata("process_name") {
            pool.name = line.args.name;
            continue;
        }
        let thread = pool.threads.entry(line.thread).or_default();
        if is_metadata("thread_name") {
            thread.lost = line.args.lost;
        } else {
            thread.events.push(event(&line, &mut pool.names));
        }
    }
    pools.into_values().collect()
}

fn event(line: &Line<'_>, names: &mut Names) -> Event {
    // A time in nanoseconds is exact as a floating-point number for the first hundred days.
    let nanoseconds = |microseconds: f64| (microseconds * 1000.0).round() as u64;
    // The name of a task may be anything.
    let kind = if line.category.is_empty() { &line.name } else { &line.category };
    let what = match &**kind {
        "task" => What::Task(nanoseconds(line.duration)),
        "asleep" => What::Sleep(nanoseconds(line.duration)),
        "steal" => What::Steal,
        "publish" => What::Publish(line.args.tasks),
        "worker begins" => What::WorkerBegin(line.args.worker),
        "worker ends" => What::WorkerEnd,
        _ => What::Other,
    };
    let is_named = matches!(what, What::Task(_)) && line.name != "task";
    let name = is_named.then(|| names.place(&line.name));
    Event { at: nanoseconds(line.microseconds), what, name }
}

fn not_a_trace(path: &Path, bytes: &[u8]) -> Failure {
    if SimRecord::is_in(bytes) || file::has_samples(bytes) {
        return Failure {
            advice: format!("Show it with: heist report {}", path.display()),
            ..unreadable(path, "it has the samples of a benchmark or a simulation instead".into())
        };
    }
    unreadable(path, "it is JSON, but not a trace".into())
}

fn unreadable(path: &Path, why: String) -> Failure {
    Failure {
        exit: Exit::File,
        what: format!("cannot read a trace from {}", path.display()),
        why,
        advice:
            "Use a file that was written by `heist trace`, or by a program with HEIST_TRACE=FILE."
                .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        parse(Path::new("a.json"), text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_the_library_writes_can_be_read() {
        let pool = heist::Pool::builder().workers(2).trace(1000).build().unwrap();
        pool.install(|| ());
        pool.stop();
        let mut bytes = Vec::new();
        pool.trace_snapshot().unwrap().write_chrome(&mut bytes).unwrap();
        let pools = parse(Path::new("a.json"), &bytes).unwrap();
        assert_eq!(pools.len(), 1);
        assert_eq!(pools[0].name, "heist 1: work stealing, 2 workers");
        let events = |kind: fn(&What) -> bool| {
            let all = pools[0].threads.values().flat_map(|thread| &thread.events);
            all.filter(|event| kind(&event.what)).count()
        };
        assert_eq!(pools[0].threads.len(), 2);
        assert_eq!(events(|what| matches!(what, What::Task(_))), 1);
        assert_eq!(events(|what| matches!(what, What::WorkerBegin(_))), 2);
        assert_eq!(events(|what| matches!(what, What::WorkerEnd)), 2);
    }

    #[test]
    fn tasks_have_names() {
        fn asleep() {}
        let pool = heist::Pool::builder().workers(1).trace(1000).build().unwrap();
        (0..3).for_each(|_| pool.spawn(asleep).join().unwrap());
        pool.spawn(|| ()).join().unwrap();
        pool.stop();
        let mut bytes = Vec::new();
        pool.trace_snapshot().unwrap().write_chrome(&mut bytes).unwrap();
        let pools = parse(Path::new("a.json"), &bytes).unwrap();
        let (events, names) = (&pools[0].threads[&1].events, &pools[0].names.list);
        let tasks = events.iter().filter(|event| matches!(event.what, What::Task(_)));
        let tasks: Vec<_> = tasks.map(|task| &*names[task.name.unwrap()]).collect();
        assert!(
            tasks[..3].iter().all(|name| name.ends_with("tasks_have_names::asleep")),
            "{tasks:?}"
        );
        assert!(tasks[3].contains("closure"), "{tasks:?}");
        assert_eq!(names.len(), 2);
    }

    #[test]
    fn a_trace_without_names_is_read() {
        let old = r#"{"traceEvents": [
            {"name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "heist 1: old, 1 workers"}},
            {"name": "task", "ph": "X", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0},
            {"name": "asleep", "ph": "X", "pid": 1, "tid": 1, "ts": 3.0, "dur": 1.0}
        ]}"#;
        let pools = parse(Path::new("a.json"), old.as_bytes()).unwrap();
        let task = Event { at: 1000, what: What::Task(2000), name: None };
        let sleep = Event { at: 3000, what: What::Sleep(1000), name: None };
        assert_eq!(pools[0].threads[&1].events, [task, sleep]);
        assert!(pools[0].names.list.is_empty());
    }

    #[test]
    fn lost_events_are_counted() {
        let pool = heist::Pool::builder().workers(1).trace(10).build().unwrap();
        (0..1000).for_each(|_| pool.spawn(|| ()).join().unwrap());
        pool.stop();
        let trace = pool.trace_snapshot().unwrap();
        let mut bytes = Vec::new();
        trace.write_chrome(&mut bytes).unwrap();
        let pools = parse(Path::new("a.json"), &bytes).unwrap();
        let lost: u64 = pools[0].threads.values().map(|thread| thread.lost).sum();
        assert_eq!(lost, trace.threads.iter().map(|thread| thread.lost).sum::<u64>());
        assert!(lost > 1000, "{lost}");
    }

    #[test]
    fn other_files_are_refused() {
        assert!(why("no").contains("it is not JSON"), "{}", why("no"));
        assert!(why(r#"{"a": 1}"#).contains("it is JSON, but not a trace"));
        assert!(why(r#"{"traceEvents": []}"#).contains("heist has not written it"));
        let other = r#"{"traceEvents": [{"name": "x", "pid": "1"}]}"#;
        assert!(why(other).contains("heist has not written it"), "{}", why(other));
        let chrome = r#"{"traceEvents": [{"name": "x", "pid": 1, "tid": 1, "ts": 1.0}]}"#;
        assert!(why(chrome).contains("heist has not written it"), "{}", why(chrome));
    }

    #[test]
    fn files_of_samples_are_sent_to_the_report() {
        let samples = include_str!("../../../tests/data/made-up.json");
        for text in [samples, r#"{"samples": 1}"#] {
            assert!(why(text).contains("Show it with: heist report a.json"), "{}", why(text));
        }
    }
}
