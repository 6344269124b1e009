//! Every ordering that a protocol of this crate relies on, by name.
//!
//! A site that is not here is `Relaxed`, and says why where it stands. `docs/ORDERINGS.md` has the
//! table: the partner of each, what breaks without it, and the model that shows it. Under loom
//! each can be weakened by its name.

use crate::sync::{Ordering, site};

macro_rules! orderings {
    ($list:ident: $($(#[$doc:meta])* $name:ident = $ordering:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub(crate) fn $name() -> Ordering {
                site(stringify!($name), Ordering::$ordering)
            }
        )*

        /// Their names.
        #[cfg(loom)]
        #[allow(missing_docs, reason = "not part of the crate outside of a model")]
        pub const $list: &[&str] = &[$(stringify!($name)),*];
    };
}

// A model fails without any of these.
orderings! { SHOWN:
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
    /// Pusher of a segment's last cell opens the next segment (`tail_follow`).
    tail_advance = Release;
    /// Thief reads the head: the segment that belongs to it is there (`head_advance`).
    head_follow = Acquire;
    /// Thief of a segment's last cell moves the head to the next segment (`head_follow`).
    head_advance = Release;
    /// Pusher links the next segment: its slots are there to see (`next_follow`).
    next_publish = Release;
    /// Thief of a segment's last cell finds the next segment (`next_publish`).
    next_follow = Acquire;
    /// Pusher has written the item (`cell_read`).
    cell_publish = Release;
    /// Thief waits for the item (`cell_publish`).
    cell_read = Acquire;
    /// Thief is done with its cells of a segment (`segment_last`).
    segment_leave = Release;
    /// The thief that leaves last has the segment to itself (`segment_leave`).
    segment_last = Acquire;
    /// Who comes to the stash of segments sees what the one before has done there (`stash_leave`).
    stash_enter = Acquire;
    /// Who leaves the stash is done with it, and with the segment that stays there (`stash_enter`).
    stash_leave = Release;
}

// Against load buffering: a load that takes effect after a later store of the same thread. The
// memory model allows it and so do ARM and RISC-V processors, but no checker that runs the code
// explores it. The argument is in `docs/ORDERINGS.md`.
orderings! { ARGUED:
    /// Pusher claims cells: it has read the tail's segment before others move it (`tail_follow`).
    tail_claim = Release;
    /// Thief claims cells: it has read the head's segment before others move it (`head_follow`).
    head_claim = Release;
}
