//! Ctrl-C: the first is a request, the second is an order.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::exit::{Exit, Failure};

static SEEN: AtomicBool = AtomicBool::new(false);

/// What is to be undone before the process ends on the spot.
static UNDO: Mutex<Option<Undo>> = Mutex::new(None);

type Undo = Box<dyn FnOnce() + Send>;

/// Signals that come so soon after the first are the same request: `timeout` sends one to the process and one to its group, and
/// fingers are slow to leave a key.
const ONE: Duration = Duration::from_millis(500);

/// From now on Ctrl-C, and a request to terminate, only set a flag. Whatever runs for longer looks at it, shows what it has, and
/// ends with [`Exit::Interrupted`]. A second one ends the process on the spot. What whoever started us wants ignored (`nohup`, and
/// the background jobs of scripts) stays so.
pub(crate) fn watch() -> Result<(), Failure> {
    let ignored = ignored::signals();
    let mut first = None;
    ctrlc::set_handler(move || {
        let now = Instant::now();
        if is_order(*first.get_or_insert(now), now) {
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

/// Whether the user wants it to end.
pub(crate) fn seen() -> bool {
    SEEN.load(Ordering::Relaxed)
}

/// Of a command that has done what it could.
pub(crate) fn exit() -> Exit {
    if seen() { Exit::Interrupted } else { Exit::Done }
}

/// Has that called if the process ends on the spot; or dropped, with what this returns. There is one at a time.
#[must_use = "it ends when this is dropped"]
pub(crate) fn undo(undo: impl FnOnce() + Send + 'static) -> Until {
    *to_undo() = Some(Box::new(undo));
    Until(())
}

/// See [`undo`].
pub(crate) struct Until(());

impl Drop for Until {
    fn drop(&mut self) {
        to_undo().take();
    }
}

fn to_undo() -> MutexGuard<'static, Option<Undo>> {
    UNDO.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_order(first: Instant, now: Instant) -> bool {
    now.duration_since(first) > ONE
}

fn end() -> ! {
    if let Some(undo) = to_undo().take() {
        // On a thread of its own: a terminal that takes nothing any more must not keep the process.
        let (done, ended) = mpsc::channel::<()>();
        let thread = thread::Builder::new().spawn(move || {
            undo();
            drop(done);
        });
        if thread.is_ok() {
            let _ = ended.recv_timeout(ONE);
        }
    }
    process::exit(Exit::Interrupted as i32)
}

/// Signals that the process was started to ignore.
#[cfg(unix)]
mod ignored {
    use std::mem::MaybeUninit;
    use std::ptr;

    use libc::{SIG_IGN, SIGHUP, SIGINT, SIGTERM, c_int};

    /// Of those that would be a request.
    pub(super) fn signals() -> Vec<c_int> {
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| is_ignored(signal)).collect()
    }

    fn is_ignored(signal: c_int) -> bool {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: without a new action the call changes nothing; it writes the old one to where there is room for it.
        let outcome = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
        if outcome != 0 {
            return false;
        }
        // SAFETY: the call above has not failed, so it has written all of it.
        let action = unsafe { action.assume_init() };
        action.sa_sigaction == SIG_IGN
    }

    pub(super) fn ignore(signal: c_int) {
        // SAFETY: there is no handler that could be wrong, and nothing depends on the one that was there.
        unsafe { libc::signal(signal, SIG_IGN) };
    }
}

/// There is no such thing.
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
    fn signals_that_come_together_are_one_request() {
        let first = Instant::now();
        assert!(!is_order(first, first));
        assert!(!is_order(first, first + Duration::from_millis(10)));
        assert!(is_order(first, first + Duration::from_secs(1)));
    }

    #[test]
    fn what_need_not_be_undone_any_more_is_dropped() {
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
