//! Where a subject reports to.

use std::fmt;

use crate::Watchdog;

/// Receives what the parts of a subject did, and watches cases that must end soon.
pub struct Monitor<'m> {
    report: Box<dyn Fn(&str) + 'm>,
    watchdog: Watchdog<String>,
}

impl<'m> Monitor<'m> {
    /// Starts a monitor.
    ///
    /// It calls `report` with one line for each part of a subject that has passed. It calls `on_hang`, on
    /// another thread, with the description of a watched case that does not end within about a minute.
    pub fn new(report: impl Fn(&str) + 'm, on_hang: impl FnOnce(String) + Send + 'static) -> Self {
        Self { report: Box::new(report), watchdog: Watchdog::start(on_hang) }
    }

    pub(crate) fn report(&self, line: &str) {
        (self.report)(line);
    }

    /// Calls `run`, which runs `case`, under the watchdog. Only for short cases: those that take long under a
    /// sanitizer must not be mistaken for cases that hang.
    pub(crate) fn watch<R>(&self, case: &impl fmt::Debug, run: impl FnOnce() -> R) -> R {
        let _watched = self.watchdog.watch(format!("{case:?}"));
        run()
    }
}

impl fmt::Debug for Monitor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}
