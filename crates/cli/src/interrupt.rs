//! Ctrl-C: the first is a request, the second is an order.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{Exit, Failure};

static SEEN: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C, and a request to terminate, only set a flag. Whatever runs for longer looks at it, shows what it has, and
/// ends with [`Exit::Interrupted`]. A second one ends the process on the spot. What whoever started us wants ignored (`nohup`, and
/// the background jobs of scripts) stays so.
pub(crate) fn watch() -> Result<(), Failure> {
    let ignored = ignored::signals();
    ctrlc::set_handler(|| {
        if SEEN.swap(true, Ordering::Relaxed) {
            process::exit(Exit::Interrupted as i32);
        }
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
