//! What a pool and its threads do in a copy of the process: see `sync::copied`.

use crate::sync::{self, copies, refuse_copy};
use crate::task::{hold_depots, release_depots};
use crate::worker::current::with_worker;
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;

impl<Q: PoolQueues> Shared<Q> {
    /// Panics in a copy of the process in which the pool was built: nothing that comes from outside would be done there.
    #[inline(always)]
    pub(crate) fn must_be_here(&self) {
        if self.copy != copies() {
            refuse_copy();
        }
    }
}

/// Prepares for copies of the process, once.
pub(crate) fn watch_copies() {
    sync::watch_copies(hold_depots, release_depots, in_copy);
}

/// Keeps the thread that has forked the process from running what is queued in the copy, when its task returns there.
unsafe extern "C" fn in_copy() {
    let _ = with_worker(|worker| worker.note_copy());
}
