//! Ctrl-C: the first one requests an end with results, the second ends the process immediately.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::exit::{Exit, Failure};

static SEEN: AtomicBool = AtomicBool::new(false);

/// The action that restores the terminal if the process ends immediately.
static UNDO: Mutex<Option<Undo>> = Mutex::new(None);

type Undo = Box<dyn FnOnce() + Send>;

/// Signals within this time of the first one count as the same request: `timeout` sends one to the process
/// and one to its group, and a key may repeat.
const SAME_REQUEST: Duration = Duration::from_millis(500);

/// Makes Ctrl-C and termination signals set a flag. Long-running commands poll the flag, show their results
/// and end with [`Exit::Interrupted`]. A second signal ends the process immediately. Signals that the parent
/// process made us ignore (`nohup`, background jobs of scripts) stay ignored.
pub(crate) fn watch() -> Result<(), Failure> {
    let ignored = ignored::signals();
    let mut first = None;
    ctrlc::set_handler(move || {
        let now = Instant::now();
        if is_second_request(*first.get_or_insert(now), now) {
            end();
        }
        SEEN.store(true, Ordering::Relaxed);
    })
    .map_err(|error| Failure {
        exit: Exit::System,
        what: "cannot watch for Ctrl-C".to_owned(),
        why: error.to_string(),
        advice: "Is the process allowed to set signal handlers and to start threads?".to_owned(),
    })?;
    ignored.into_iter().for_each(ignored::ignore);
    Ok(())
}

/// Returns `true` if the user has asked the command to end.
pub(crate) fn seen() -> bool {
    SEEN.load(Ordering::Relaxed)
}

/// Returns the exit code of a command that has shown its results.
pub(crate) fn exit() -> Exit {
    if seen() { Exit::Interrupted } else { Exit::Done }
}

/// Calls `undo` if the process ends immediately. Dropping the guard drops `undo` without a call. There is
/// only one at a time.
#[must_use = "dropping the guard removes the action"]
pub(crate) fn undo(undo: impl FnOnce() + Send + 'static) -> UndoGuard {
    *to_undo() = Some(Box::new(undo));
    UndoGuard(())
}

/// See [`undo`].
pub(crate) struct UndoGuard(());

impl Drop for UndoGuard {
    fn drop(&mut self) {
        to_undo().take();
    }
}

fn to_undo() -> MutexGuard<'static, Option<Undo>> {
    UNDO.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_second_request(first: Instant, now: Instant) -> bool {
    now.duration_since(first) > SAME_REQUEST
}

fn end() -> ! {
    if let Some(undo) = to_undo().take() {
        // On another thread, because a terminal that blocks must not keep the process alive.
        let (done, ended) = mpsc::channel::<()>();
        let thread = thread::Builder::new().spawn(move || {
            undo();
            drop(done);
        });
        if thread.is_ok() {
            let _ = ended.recv_timeout(SAME_REQUEST);
        }
    }
    process::exit(Exit::Interrupted as i32)
}

/// Signals that the parent process made us ignore.
#[cfg(unix)]
mod ignored {
    use std::mem::MaybeUninit;
    use std::ptr;

    use libc::{SIG_IGN, SIGHUP, SIGINT, SIGTERM, c_int};

    /// Returns the ignored ones among the signals that would end a run.
    pub(super) fn signals() -> Vec<c_int> {
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| is_ignored(signal)).collect()
    }

    fn is_ignored(signal: c_int) -> bool {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: without a new action, the call changes no signal handling; it writes the current action to
        // `action`, which has room for it.
        let outcome = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
        if outcome != 0 {
            return false;
        }
        // SAFETY: the call above succeeded, so it has initialised `action`.
        let action = unsafe { action.assume_init() };
        action.sa_sigaction == SIG_IGN
    }

    pub(super) fn ignore(signal: c_int) {
        // SAFETY: `SIG_IGN` is a valid disposition, and nothing depends on the handler that it replaces.
        unsafe { libc::signal(signal, SIG_IGN) };
    }
}

/// Other systems have no ignored signals.
#[cfg(not(unix))]
mod ignored {
    pub(super) fn signals() -> Option<()> {
        None
    }

    pub(super) fn ignore((): ()) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn signals_at_once_are_one_request() {
        let first = Instant::now();
        assert!(!is_second_request(first, first));
        assert!(!is_second_request(first, first + Duration::from_millis(10)));
        assert!(is_second_request(first, first + Duration::from_secs(1)));
    }

    #[test]
    fn dropping_the_guard_removes_the_action() {
        let kept = Arc::new(());
        let until = undo({
            let kept = Arc::clone(&kept);
            move || drop(kept)
        });
        assert!(to_undo().is_some());
        drop(until);
        assert!(to_undo().is_none() && Arc::strong_count(&kept) == 1);
    }
}
