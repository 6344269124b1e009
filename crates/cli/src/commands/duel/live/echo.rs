//! Turns off the echo of typed characters, which would appear in the middle of the live view.

/// Turns the echo on again when it is dropped.
pub(super) struct EchoOff {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

/// Returns `true` if this process is in the foreground of its terminal. A background process would draw over
/// the output of others.
#[cfg(unix)]
pub(super) fn in_foreground() -> bool {
    // A process without a terminal is not in the background of one.
    rustix::termios::tcgetpgrp(std::io::stderr())
        .map_or(true, |group| group == rustix::process::getpgrp())
}

#[cfg(not(unix))]
pub(super) fn in_foreground() -> bool {
    true
}

impl EchoOff {
    #[cfg(unix)]
    pub(super) fn begin() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(std::io::stderr()).ok();
        if let Some(mut silent) = before.clone() {
            silent.local_modes.remove(LocalModes::ECHO);
            // If this fails, typed characters are visible, which does little harm.
            let _ = tcsetattr(std::io::stderr(), OptionalActions::Now, &silent);
        }
        Self { before }
    }

    #[cfg(not(unix))]
    pub(super) fn begin() -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for EchoOff {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        // A process in the background would be stopped here. The shell has then set the terminal for itself
        // already.
        if let Some(before) = self.before.take().filter(|_| in_foreground()) {
            let _ = tcsetattr(std::io::stderr(), OptionalActions::Now, &before);
        }
    }
}
