//! A span of the crate `tracing` around every task.

use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;

use crate::panic::{contain, contained};

/// A task that runs.
pub(super) struct Span(Option<EnteredSpan>);

impl Span {
    /// A subscriber is the user's: if it panics, that is contained.
    #[inline(always)]
    pub(super) fn enter() -> Self {
        // Nobody looks, most of the time. Whoever may look is asked below.
        if LevelFilter::current() < LevelFilter::TRACE {
            return Self(None);
        }
        Self(contained(|| tracing::trace_span!(target: "heist", "task").entered()))
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(span) = self.0.take() {
            contain(|| drop(span));
        }
    }
}
