//! A span of the crate `tracing` around every task.

use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;

use crate::panic::{contain, contained};

/// The span of a running task.
pub(super) struct Span(Option<EnteredSpan>);

impl Span {
    /// Enters a span. The subscriber is user code: its panic is caught.
    #[inline(always)]
    pub(super) fn enter() -> Self {
        // Usually there is no subscriber, and this test is all that it costs. A subscriber is asked below.
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
