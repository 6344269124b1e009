//! What a thread of a pool does in a copy of the process: see `sync::copied`.

use crate::sync;
use crate::task::{hold_depots, release_depots};
use crate::worker::current::with_worker;

/// Prepares for copies of the process, once.
pub(crate) fn watch_copies() {
    sync::watch_copies(hold_depots, release_depots, in_copy);
}

/// Keeps the thread that has forked the process from running what is queued in the copy, when its task returns there.
unsafe extern "C" fn in_copy() {
    let _ = with_worker(|worker| worker.note_copy());
}
