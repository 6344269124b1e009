//! Every ordering that a protocol of this crate relies on, by name.
//!
//! A site that is not here is `Relaxed`, and says why where it stands. `docs/ORDERINGS.md` has the
//! table: the partner of each, what breaks without it, and the model that shows it. Under loom
//! each can be weakened by its name, and the models must then fail.

use crate::sync::{Ordering, site};

macro_rules! orderings {
    ($($(#[$doc:meta])* $name:ident = $ordering:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub(crate) fn $name() -> Ordering {
                site(stringify!($name), Ordering::$ordering)
            }
        )*

        /// The names of all sites.
        #[cfg(loom)]
        #[allow(missing_docs, reason = "not part of the crate outside of a model")]
        pub const SITES: &[&str] = &[$(stringify!($name)),*];
    };
}

orderings! {
    /// Owner looks whether a slot is free: the thief that emptied it has read it (`slot_finish`).
    slot_reuse = Acquire;
    /// Owner fills a slot: a thief that sees it full sees the item (`slot_claim`).
    slot_publish = Release;
    /// Thief claims a full slot: it sees the item (`slot_publish`).
    slot_claim = Acquire;
    /// Thief has read the item: the owner may write over it (`slot_reuse`, `slot_restore`).
    slot_finish = Release;
    /// Owner's pop swapped away a thief's finish mark and puts it back (`slot_finish`).
    slot_restore = Acquire;

    /// Owner has moved to a larger ring: its slots are there to see (`ring_follow`).
    ring_publish = Release;
    /// Thief goes to the current ring (`ring_publish`).
    ring_follow = Acquire;

    /// A handle dies: what was done through it is done (`handle_last`).
    handle_drop = Release;
    /// The last handle tears down after all others (`handle_drop`).
    handle_last = Acquire;

    /// Pusher reads the tail: the segment that belongs to it is there (`tail_advance`).
    tail_follow = Acquire;
    /// Pusher of a segment's last slot opens the next segment (`tail_follow`).
    tail_advance = Release;
    /// Thief reads the head: the segment that belongs to it is there (`head_advance`).
    head_follow = Acquire;
    /// Thief of a segment's last slot moves the head to the next segment (`head_follow`).
    head_advance = Release;
    /// Pusher links the next segment: its slots are there to see (`next_follow`).
    next_publish = Release;
    /// Thief of a segment's last slot finds the next segment (`next_publish`).
    next_follow = Acquire;
    /// Pusher has written the item (`cell_read`).
    cell_publish = Release;
    /// Thief waits for the item (`cell_publish`).
    cell_read = Acquire;
    /// Thief is done with its slots of a segment (`segment_last`).
    segment_leave = Release;
    /// The thief that leaves last frees the segment (`segment_leave`).
    segment_last = Acquire;
}
