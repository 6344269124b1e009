//! What is typed during a duel is not shown: it would land in the middle of the picture.

/// Shows it again when it is dropped.
pub(super) struct Silence {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

/// Is this process one that may draw? One in the background would draw over what somebody else is doing.
#[cfg(unix)]
pub(super) fn in_foreground() -> bool {
    // A process without a terminal is in nobody's background.
    rustix::termios::tcgetpgrp(std::io::stderr())
        .map_or(true, |group| group == rustix::process::getpgrp())
}

#[cfg(not(unix))]
pub(super) fn in_foreground() -> bool {
    true
}

impl Silence {
    #[cfg(unix)]
    pub(super) fn begin() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(std::io::stderr()).ok();
        if let Some(mut silent) = before.clone() {
            silent.local_modes.remove(LocalModes::ECHO);
            // If that fails, what is typed is shown: no great harm.
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
impl Drop for Silence {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        // Were it sent to the background meanwhile, this would stop the process; but then the shell has set the terminal as it wants it.
        if let Some(before) = self.before.take().filter(|_| in_foreground()) {
            let _ = tcsetattr(std::io::stderr(), OptionalActions::Now, &before);
        }
    }
}
