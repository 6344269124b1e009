//! What has waited in a section of the stages, and can be gone on with now (step G3 of `../README.md`).

use std::collections::VecDeque;

use super::Control;
use super::state::Notifications;
use crate::order;
use crate::pipeline::deliver::BatchEntry;
use crate::sync::{AtomicUsize, Mutex, Ordering, full_fence, lock};

/// A batch, or a part of it, that a worker may go on with in a section.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// The number of the section in the chain of stages, counted from 1.
    pub(crate) section: usize,
    /// The group, if the section has groups.
    pub(crate) group: usize,
    pub(crate) entry: BatchEntry,
}

/// The tokens that no worker has taken yet, the oldest one first.
pub(super) struct Ready {
    tokens: Mutex<VecDeque<Token>>,
    /// The number of tokens, for threads that only look. Written under the lock. Ordering: relaxed, as for the length of a queue.
    length: AtomicUsize,
}

impl Default for Ready {
    fn default() -> Self {
        Self { tokens: Mutex::new(VecDeque::new()), length: AtomicUsize::new(0) }
    }
}

impl Control {
    /// Has workers go on with these. Each is announced like a batch that any worker may take (B1 to B4), also while a worker waits
    /// for its turn at the source.
    pub(crate) fn make_ready(&self, new: &[Token]) {
        if new.is_empty() {
            return;
        }
        let Ready { tokens, length } = &self.ready.0;
        // B1.
        let mut tokens = lock(tokens);
        tokens.extend(new);
        length.store(tokens.len(), Ordering::Relaxed);
        drop(tokens);
        // B2. Pairs with `REST` in `try_deactivate`.
        full_fence(order::GIVE);
        // B3. A worker whose deactivation this misses sees the tokens at its last look (W4).
        if self.has_inactive() {
            // B4.
            let mut notifications = Notifications::default();
            let mut state = lock(&self.state.0);
            new.iter().for_each(|_| self.activate(&mut state, None, &mut notifications));
            drop(state);
            self.send(notifications);
        }
    }

    /// Takes the oldest token.
    pub(crate) fn take_ready(&self) -> Option<Token> {
        if !self.has_ready() {
            return None;
        }
        let Ready { tokens, length } = &self.ready.0;
        let mut tokens = lock(tokens);
        let token = tokens.pop_front();
        length.store(tokens.len(), Ordering::Relaxed);
        token
    }

    /// Returns whether there is a token. It is a hint, except after a fence, as the length of a queue is.
    pub(crate) fn has_ready(&self) -> bool {
        self.ready.0.length.load(Ordering::Relaxed) > 0
    }

    /// Returns whether results are delivered in the order of the source.
    pub(crate) fn is_ordered(&self) -> bool {
        self.rules.ordered
    }
}
