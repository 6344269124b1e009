//! The last events of each thread in words, for a dump of the pool.

use std::fmt;
use std::time::Duration;

use super::event::{Event, EventKind};

/// The last events of one thread.
pub(crate) struct ThreadEnd {
    /// The thread's place in the pool. A later thread may have the place of one that has ended.
    pub(crate) place: usize,
    /// The oldest first.
    pub(crate) events: Vec<Event>,
}

/// The last events of the threads of a pool.
pub(crate) struct LastEvents {
    /// The time from the start of the pool until the events were read.
    pub(super) nanoseconds: u64,
    pub(super) threads: Vec<ThreadEnd>,
}

impl LastEvents {
    /// Returns the events of the last thread in that place, each as a line without its end, the oldest first.
    pub(crate) fn of(&self, place: usize) -> impl Iterator<Item = impl fmt::Display> {
        let thread = self.threads.iter().rfind(|thread| thread.place == place);
        let events = thread.into_iter().flat_map(|thread| &thread.events);
        events.map(|event| {
            // The thread may have written it after the clock was read.
            let age = self.nanoseconds.saturating_sub(event.nanoseconds);
            Line { age: Duration::from_nanos(age), event: *event }
        })
    }
}

/// An event, and how long ago it was.
struct Line {
    age: Duration,
    event: Event,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1?} ago: ", self.age)?;
        let counted = |count: usize, what| format!("{count} {what}{}", plural(count));
        match self.event.kind {
            EventKind::Start => match self.event.name {
                Some(name) => write!(f, "began the task {name}"),
                None => f.write_str("began a task"),
            },
            EventKind::End => f.write_str("ended the task that it began last"),
            EventKind::Steal { victim, tasks } => {
                write!(f, "stole {} from thread {victim}", counted(tasks, "task"))
            }
            EventKind::InjectorTake { tasks } => {
                write!(f, "took {} from an injector", counted(tasks, "task"))
            }
            EventKind::Publish { tasks } => {
                write!(f, "published {} for other workers", counted(tasks, "job"))
            }
            EventKind::Park => f.write_str("went to sleep"),
            EventKind::Unpark => f.write_str("woke up"),
            EventKind::Wake => f.write_str("woke a worker"),
            EventKind::WorkerBegin { worker } => write!(f, "became worker {worker}"),
            EventKind::WorkerEnd => f.write_str("ceased to be a worker"),
        }
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn event(nanoseconds: u64, kind: EventKind) -> Event {
        Event { nanoseconds, kind, name: None }
    }

    #[test]
    fn events_are_words() {
        let named = Event { name: Some("app::load"), ..event(1_000, EventKind::Start) };
        let events = vec![
            named,
            event(2_500_000_000, EventKind::End),
            event(2_999_998_500, EventKind::Steal { victim: 4, tasks: 1 }),
            event(2_999_999_000, EventKind::InjectorTake { tasks: 2 }),
            event(3_000_000_001, EventKind::Park),
        ];
        let (place, other) = (3, vec![event(0, EventKind::Wake)]);
        let threads = vec![
            ThreadEnd { place, events: other },
            ThreadEnd { place, events },
            ThreadEnd { place: 5, events: Vec::new() },
        ];
        let last = LastEvents { nanoseconds: 3_000_000_000, threads };
        let lines: Vec<_> = last.of(3).map(|line| line.to_string()).collect();
        assert_eq!(
            lines,
            [
                "3.0s ago: began the task app::load",
                "500.0ms ago: ended the task that it began last",
                "1.5µs ago: stole 1 task from thread 4",
                "1.0µs ago: took 2 tasks from an injector",
                "0.0ns ago: went to sleep",
            ]
        );
        assert_eq!((last.of(5).count(), last.of(0).count()), (0, 0));
    }
}
