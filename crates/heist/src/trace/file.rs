//! `HEIST_TRACE`: writes the traces of all pools of a program to a file when the program exits.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::{env, process};

use super::chrome;
use super::log::Log;
use crate::sync::{Arc, Mutex, lock};

/// The environment variable that names the file.
const ENVIRONMENT: &str = "HEIST_TRACE";

/// The number of pools whose last events are kept, also after their end. A program may start any number of pools.
const POOLS: usize = 64;

/// The file, and the process that writes it: a forked child has a copy of all of this, but none of the threads.
struct Place {
    file: PathBuf,
    process: u32,
}

static PLACE: OnceLock<Place> = OnceLock::new();

static LOGS: Mutex<Vec<Arc<Log>>> = Mutex::new(Vec::new());

/// Returns whether the environment requests a trace.
pub(super) fn is_wanted() -> bool {
    env::var_os(ENVIRONMENT).is_some_and(|name| !name.is_empty())
}

/// Keeps a log, to be written when the program exits.
pub(super) fn keep(log: Arc<Log>) -> Arc<Log> {
    PLACE.get_or_init(|| {
        at_exit(write);
        Place::now()
    });
    let mut logs = lock(&LOGS);
    if logs.len() >= POOLS {
        if let Some(oldest) = logs.iter().position(|log| Arc::strong_count(log) == 1) {
            logs.remove(oldest);
        }
    }
    logs.push(Arc::clone(&log));
    log
}

#[cfg(any(unix, windows))]
fn at_exit(function: extern "C" fn()) {
    // If the system cannot register the function, no file is written, and there is no caller to report that to.
    //
    // SAFETY: the function does not unwind, and uses nothing that is gone when a program exits.
    let _ = unsafe { libc::atexit(function) };
}

/// Does nothing: on this system a program's exit cannot be observed.
#[cfg(not(any(unix, windows)))]
fn at_exit(_: extern "C" fn()) {}

extern "C" fn write() {
    let Some(Place { file: path, process }) = PLACE.get() else { return };
    if *process != process::id() {
        return;
    }
    let logs = lock(&LOGS).clone();
    let Some(first) = logs.iter().map(|log| log.start).min() else { return };
    let after = |log: &Arc<Log>| log.start.duration_since(first).as_nanos() as u64;
    let traces: Vec<_> = logs.iter().map(|log| (log.read(), after(log))).collect();
    let written = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        chrome::write(&mut file, traces.iter().map(|(trace, start)| (trace, *start)))?;
        file.flush()
    });
    if let Err(error) = written {
        // Not `eprintln!`, which panics if stderr is closed.
        let _ = writeln!(
            std::io::stderr(),
            "heist: no trace was written to {}: {error}; set {ENVIRONMENT} to a file in a folder that exists",
            path.display()
        );
    }
}

impl Place {
    /// Returns the file by the environment and the working directory as they are now; the program may change both
    /// later.
    fn now() -> Self {
        let name = with_process(&env::var_os(ENVIRONMENT).unwrap_or_default());
        let file = std::path::absolute(&name).unwrap_or(name);
        Self { file, process: process::id() }
    }
}

/// Replaces `%p` by the process id.
fn with_process(name: &OsStr) -> PathBuf {
    match name.to_str() {
        Some(name) => name.replace("%p", &process::id().to_string()).into(),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_can_have_the_process() {
        let id = process::id();
        assert_eq!(with_process(OsStr::new("a-%p.json")), PathBuf::from(format!("a-{id}.json")));
        assert_eq!(with_process(OsStr::new("b.json")), PathBuf::from("b.json"));
    }
}
