//! Writes a trace in the format that Chrome's and Perfetto's viewers read: the "Trace Event Format", in JSON.

use std::fmt;
use std::io::{self, Write};

use super::event::{Event, EventKind, ThreadTrace, Trace};

impl Trace {
    /// Writes the trace as a JSON file that [Perfetto](https://ui.perfetto.dev) and `chrome://tracing` show. The pool
    /// is a process. Each thread is a track with its tasks, by their names, and its sleep; steals and other events are marks on it.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).trace(1000).build()?;
    /// pool.spawn(|| ()).join().unwrap();
    /// let file = std::io::sink(); // or std::fs::File::create("trace.json")?
    /// pool.trace_snapshot().expect("it was asked for").write_chrome(file)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of the writer.
    pub fn write_chrome(&self, mut out: impl Write) -> io::Result<()> {
        write(&mut out, [(self, 0)].into_iter())
    }
}

/// Writes the pools of a program, each as a process, and each with the number of nanoseconds between the
/// beginning of the file and its start.
pub(super) fn write<'t>(
    out: &mut dyn Write,
    traces: impl Iterator<Item = (&'t Trace, u64)>,
) -> io::Result<()> {
    let mut file = Chrome { out, any: false, start: 0 };
    file.out.write_all(b"{\"traceEvents\":[")?;
    for (pool, (trace, start)) in traces.enumerate() {
        file.start = start;
        // Viewers treat a process number of zero as missing.
        file.pool(pool + 1, trace)?;
    }
    file.out.write_all(b"\n],\"displayTimeUnit\":\"ns\"}\n")
}

/// A file that is being written.
struct Chrome<'o> {
    out: &'o mut dyn Write,
    /// Does the file contain an event already?
    any: bool,
    /// The start of the pool that is being written.
    start: u64,
}

/// The process and the thread of an event, which every line states.
#[derive(Clone, Copy)]
struct Track {
    pool: usize,
    thread: usize,
}

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"pid\":{},\"tid\":{}", self.pool, self.thread)
    }
}

/// What a track shows as a bar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bar {
    Task,
    Sleep,
}

/// A bar that has begun.
struct Open {
    bar: Bar,
    start: u64,
    name: Option<&'static str>,
}

impl Open {
    fn new(bar: Bar, event: &Event) -> Self {
        Self { bar, start: event.nanoseconds, name: event.name }
    }
}

impl Bar {
    /// Returns the category of the bar, which is also its name if it has no other.
    fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Sleep => "asleep",
        }
    }
}

impl Chrome<'_> {
    fn event(&mut self, event: fmt::Arguments<'_>) -> io::Result<()> {
        let comma = if self.any { "," } else { "" };
        self.any = true;
        write!(self.out, "{comma}\n{{{event}}}")
    }

    fn pool(&mut self, pool: usize, trace: &Trace) -> io::Result<()> {
        let track = Track { pool, thread: 0 };
        let name = format!("heist {pool}: {}, {} workers", trace.pool, trace.workers);
        self.name(track, "process_name", &name, 0)?;
        for (thread, events) in trace.threads.iter().enumerate() {
            let track = Track { pool, thread: thread + 1 };
            self.thread(track, events, trace.nanoseconds)?;
        }
        Ok(())
    }

    /// Names a pool or a thread. Viewers ignore the number of lost events, which `heist trace --summary` reads.
    fn name(&mut self, track: Track, what: &str, name: &str, lost: u64) -> io::Result<()> {
        let name = Text(name);
        let lost = if lost > 0 { format!(",\"lost\":{lost}") } else { String::new() };
        self.event(format_args!(
            "\"ph\":\"M\",{track},\"ts\":0,\"name\":\"{what}\",\"args\":{{\"name\":{name}{lost}}}"
        ))
    }

    fn thread(&mut self, track: Track, thread: &ThreadTrace, end: u64) -> io::Result<()> {
        self.name(track, "thread_name", &thread.name, thread.lost)?;
        let mut open: Vec<Open> = Vec::new();
        for event in &thread.events {
            match event.kind {
                EventKind::Start => open.push(Open::new(Bar::Task, event)),
                EventKind::Park => open.push(Open::new(Bar::Sleep, event)),
                EventKind::End => self.close(track, &mut open, Bar::Task, event.nanoseconds)?,
                EventKind::Unpark => self.close(track, &mut open, Bar::Sleep, event.nanoseconds)?,
                _ => self.mark(track, event)?,
            }
        }
        // Closes the bars that are still open.
        while let Some(&Open { bar, .. }) = open.last() {
            self.close(track, &mut open, bar, end)?;
        }
        Ok(())
    }

    /// Closes the bar that was opened last, if it is one of these. An end without a beginning began before the first
    /// event that was kept.
    fn close(&mut self, track: Track, open: &mut Vec<Open>, bar: Bar, end: u64) -> io::Result<()> {
        let Some(&Open { start, name, .. }) = open.last().filter(|last| last.bar == bar) else {
            return Ok(());
        };
        open.pop();
        let time = Micros(end.saturating_sub(start));
        let (start, category) = (Micros(self.start + start), bar.name());
        let name = Text(name.unwrap_or(category));
        self.event(format_args!(
            "\"ph\":\"X\",{track},\"ts\":{start},\"dur\":{time},\"cat\":\"{category}\",\"name\":{name}"
        ))
    }

    fn mark(&mut self, track: Track, event: &Event) -> io::Result<()> {
        let (name, args) = match event.kind {
            EventKind::Steal { victim, tasks } => {
                ("steal", format!("{{\"from\":{victim},\"tasks\":{tasks}}}"))
            }
            EventKind::InjectorTake { tasks } => {
                ("take from injector", format!("{{\"tasks\":{tasks}}}"))
            }
            EventKind::Publish { tasks } => ("publish", format!("{{\"tasks\":{tasks}}}")),
            EventKind::Wake => ("wake another", "{}".into()),
            EventKind::WorkerBegin { worker } => {
                ("worker begins", format!("{{\"worker\":{worker}}}"))
            }
            EventKind::WorkerEnd => ("worker ends", "{}".into()),
            EventKind::Start | EventKind::End | EventKind::Park | EventKind::Unpark => {
                unreachable!("these are bars")
            }
        };
        let when = Micros(self.start + event.nanoseconds);
        self.event(format_args!(
            "\"ph\":\"i\",\"s\":\"t\",{track},\"ts\":{when},\"name\":\"{name}\",\"args\":{args}"
        ))
    }
}

/// Formats nanoseconds as the microseconds of the format.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Formats a JSON string.
struct Text<'t>(&'t str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;

        f.write_char('"')?;
        for char in self.0.chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                control if control.is_control() => write!(f, "\\u{:04x}", control as u32)?,
                plain => f.write_char(plain)?,
            }
        }
        f.write_char('"')
    }
}
