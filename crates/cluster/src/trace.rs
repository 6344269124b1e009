//! A trace of a run, with a process for each node and a track for each of its threads, in the format that Perfetto reads.
//!
//! The coordinator writes it. Workers say when they have started a batch, in the time of the coordinator: a worker knows it from
//! the answer to a hello, as exactly as half of the time that the answer took.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::time::{Duration, Instant};

use crate::error::ClusterError;
use crate::message::Ended;
use crate::settings::Settings;

/// The process of the coordinator. Viewers treat a process number of zero as missing.
const COORDINATOR: usize = 1;
/// A measurement of the coordinator's time is replaced by a less exact one after this: clocks drift.
const OLD: Duration = Duration::from_secs(60);

/// The time of a coordinator, as a worker knows it.
#[derive(Default)]
pub(crate) struct RemoteClock(Option<Reading>);

struct Reading {
    at: Instant,
    /// What the coordinator's clock has shown then.
    micros: u64,
    took: Duration,
}

impl RemoteClock {
    /// Notes an answer that shows the time of the coordinator, and has come now.
    pub(crate) fn note(&mut self, micros: u64, took: Duration, now: Instant) {
        let is_better = |known: &Reading| took <= known.took || now - known.at > OLD;
        if self.0.as_ref().is_none_or(is_better) {
            let micros = micros.saturating_add(took.as_micros() as u64 / 2);
            self.0 = Some(Reading { at: now, micros, took });
        }
    }

    /// Returns the coordinator's time in microseconds, or `None` if it is not known.
    pub(crate) fn at(&self, time: Instant) -> Option<u64> {
        let Reading { at, micros, .. } = self.0.as_ref()?;
        let (after, before) = (time.checked_duration_since(*at), at.checked_duration_since(time));
        Some(match (after, before) {
            (Some(after), _) => micros.saturating_add(after.as_micros() as u64),
            (None, before) => micros.saturating_sub(before.unwrap_or_default().as_micros() as u64),
        })
    }
}

/// A trace that is being written. After an error of the file system, nothing more is written.
pub(crate) struct Trace {
    out: Option<BufWriter<File>>,
    /// The processes of the nodes.
    nodes: HashMap<String, usize>,
}

impl Trace {
    /// Creates the file of the settings, if they name one.
    pub(crate) fn new(settings: &Settings) -> Result<Option<Self>, ClusterError> {
        let Some(file) = &settings.trace else { return Ok(None) };
        let created = File::create(file).map_err(|error| ClusterError::Setting {
            name: "trace",
            value: file.display().to_string(),
            hint: format!("the file cannot be created ({error})"),
        })?;
        let mut trace = Self { out: Some(BufWriter::new(created)), nodes: HashMap::new() };
        trace.write("{\"traceEvents\":[");
        let name = quoted(&format!("coordinator {}", settings.node));
        trace.write(&format!(
            "\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{COORDINATOR},\"tid\":0,\"args\":{{\"name\":{name}}}}}"
        ));
        Ok(Some(trace))
    }

    /// A batch was computed. `note` says what has become of its results, if it is not the usual.
    pub(crate) fn batch(&mut self, ended: &Ended, note: &str) {
        // The worker has not heard yet what time it is.
        let Some(began) = ended.began else { return };
        let process = self.process(&ended.node);
        let name = quoted(&format!("batch {}{note}", ended.number));
        let (thread, micros) = (ended.thread + 1, ended.micros);
        self.event(&format!(
            "\"ph\":\"X\",\"name\":{name},\"pid\":{process},\"tid\":{thread},\"ts\":{began},\"dur\":{micros}"
        ));
    }

    /// Something has happened at the coordinator.
    pub(crate) fn mark(&mut self, micros: u64, what: &str) {
        let name = quoted(what);
        self.event(&format!(
            "\"ph\":\"i\",\"s\":\"p\",\"name\":{name},\"pid\":{COORDINATOR},\"tid\":0,\"ts\":{micros}"
        ));
    }

    /// So many batches have no result.
    pub(crate) fn outstanding(&mut self, micros: u64, batches: usize) {
        self.event(&format!(
            "\"ph\":\"C\",\"name\":\"outstanding\",\"pid\":{COORDINATOR},\"tid\":0,\"ts\":{micros},\"args\":{{\"batches\":{batches}}}"
        ));
    }

    pub(crate) fn end(mut self) {
        self.write("\n],\"displayTimeUnit\":\"ms\"}\n");
        if let Some(mut out) = self.out {
            let _ = out.flush();
        }
    }

    fn process(&mut self, node: &str) -> usize {
        if let Some(process) = self.nodes.get(node) {
            return *process;
        }
        let process = COORDINATOR + 1 + self.nodes.len();
        self.nodes.insert(node.to_owned(), process);
        let name = quoted(node);
        self.event(&format!(
            "\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"tid\":0,\"args\":{{\"name\":{name}}}"
        ));
        process
    }

    fn event(&mut self, fields: &str) {
        self.write(&format!(",\n{{{fields}}}"));
    }

    fn write(&mut self, text: &str) {
        if self.out.as_mut().is_some_and(|out| out.write_all(text.as_bytes()).is_err()) {
            self.out = None;
        }
    }
}

/// Returns a string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_strings_of_json() {
        let name = "a\"b\\c\n\u{1b}é";
        let read: String = serde_json::from_str(&quoted(name)).expect("a string");
        assert_eq!(read, name);
    }

    #[test]
    fn the_most_exact_reading_counts_until_it_is_old() {
        let (now, millis) = (Instant::now(), Duration::from_millis);
        let mut clock = RemoteClock::default();
        assert_eq!(clock.at(now), None);
        clock.note(50_000, millis(20), now);
        assert_eq!(clock.at(now), Some(60_000));
        assert_eq!(clock.at(now - millis(5)), Some(55_000));
        clock.note(70_000, millis(10), now + millis(20));
        assert_eq!(clock.at(now + millis(20)), Some(75_000));
        clock.note(0, millis(40), now + millis(30));
        assert_eq!(clock.at(now + millis(20)), Some(75_000));
        let later = now + OLD * 2;
        clock.note(7_000, millis(40), later);
        assert_eq!(clock.at(later), Some(27_000));
    }
}
