//! Every ordering that a protocol of this crate relies on, by name.
//!
//! An atomic operation whose ordering has no name here is `Relaxed`, and the comment beside it gives the
//! reason. `docs/ORDERINGS.md` has the table: the partner of each ordering, what breaks without it, and the
//! model that shows the failure. Under loom, each ordering can be weakened by its name.
//!
//! Each comment names the partner in parentheses.

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

        /// The names of these orderings.
        #[cfg(loom)]
        #[allow(missing_docs, reason = "not part of the crate outside of a model")]
        pub const $list: &[&str] = &[$(stringify!($name)),*];
    };
}

// For each of these orderings, some model fails when that ordering is weakened.
orderings! { SHOWN:
    /// The owner checks whether a slot is free: the thief that emptied it has read the item
    /// (`slot_finish`).
    slot_reuse = Acquire;
    /// The owner fills a slot: a thief that sees it full sees the item (`slot_claim`).
    slot_publish = Release;
    /// A thief claims a full slot: it sees the item (`slot_publish`).
    slot_claim = Acquire;
    /// A thief has read the item: the owner may overwrite it (`slot_reuse`, `slot_restore`).
    slot_finish = Release;
    /// The owner's pop swapped a thief's finish mark away and puts it back (`slot_finish`).
    slot_restore = Acquire;

    /// The owner has moved to a larger ring: its slots are visible (`ring_follow`).
    ring_publish = Release;
    /// A thief goes to the current ring (`ring_publish`).
    ring_follow = Acquire;

    /// A handle is dropped: everything done through it happened before (`handle_last`).
    handle_drop = Release;
    /// The last handle frees the deque after all other handles are gone (`handle_drop`).
    handle_last = Acquire;

    /// A pusher reads the tail index: the segment that belongs to it is visible (`tail_advance`).
    tail_follow = Acquire;
    /// The pusher of a segment's last cell opens the next segment (`tail_follow`).
    tail_advance = Release;
    /// A thief reads the head index: the segment that belongs to it is visible (`head_advance`).
    head_follow = Acquire;
    /// The thief of a segment's last cell moves the head to the next segment (`head_follow`).
    head_advance = Release;
    /// A pusher links the next segment: its cells are visible (`next_follow`).
    next_publish = Release;
    /// The thief of a segment's last cell finds the next segment (`next_publish`).
    next_follow = Acquire;
    /// A pusher has written the item (`cell_read`).
    cell_publish = Release;
    /// A thief waits for the item (`cell_publish`).
    cell_read = Acquire;
    /// A thief has finished with its cells of a segment (`segment_last`).
    segment_leave = Release;
    /// The last thief to leave a segment has exclusive access to it (`segment_leave`).
    segment_last = Acquire;
    /// A thread that enters the stash of segments sees what the previous one did there
    /// (`stash_leave`).
    stash_enter = Acquire;
    /// A thread that leaves the stash has finished with it and with the segment it put there
    /// (`stash_enter`).
    stash_leave = Release;
}

// These prevent load buffering: a load that takes effect after a later store of the same thread. The
// memory model and ARM and RISC-V processors allow it, but no checker that runs the code explores it. The
// argument is in `docs/ORDERINGS.md`, and the litmus tests `claim*` (`ci/litmus.sh`) show it for the memory models.
orderings! { ARGUED:
    /// A pusher claims cells: it has read the tail's segment before another thread changes it
    /// (`tail_follow`).
    tail_claim = Release;
    /// A thief claims cells: it has read the head's segment before another thread changes it
    /// (`head_follow`).
    head_claim = Release;
}
