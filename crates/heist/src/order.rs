//! Every ordering that a protocol of this crate relies on, by name.
//!
//! A site that is not here is `Relaxed`, and says why where it stands. `docs/ORDERINGS.md` has the
//! table: the partner of each, what breaks without it, and the model that shows it. Under loom
//! each can be weakened by its name; the fences are in the list as well, and are taken away.

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

        /// Their names.
        #[cfg(all(test, loom))]
        pub(crate) const ORDERINGS: &[&str] = &[$(stringify!($name)),*];
    };
}

orderings! {
    /// Runner finds the handle gone: what was done through it is done (`handle_leaves`).
    start_alone = Acquire;
    /// Whoever is to run a task writes its outcome after whoever has put it back has looked at it
    /// (`postpone`).
    claim = Acquire;
    /// Worker that has started a task and looked at it puts it back (`claim`).
    postpone = Release;
    /// The queue's side lets go: the outcome is there to see, and the handle's side is done with
    /// the slot if it went first (`outcome_read`, `handle_leaves`).
    queue_leaves = AcqRel;
    /// The handle lets go, likewise (`queue_leaves`, `start_alone`).
    handle_leaves = AcqRel;
    /// Handle sees that the task is done: it sees the outcome (`queue_leaves`).
    outcome_read = Acquire;
    /// Handle leaves word where to be told: the runner sees the listener (`queue_leaves`).
    listener_publish = Release;

    /// The end of a task is counted after its submission (`count_read`).
    count_publish = Release;
    /// A reader that reads the ends first does not see one without its submission (`count_publish`).
    count_read = Acquire;

    /// Entries of a batch have their outcomes: the last one to say so sees them all (itself).
    batch_done = AcqRel;

    /// Something that was spawned in a scope has ended: what the last one to end says is said after
    /// all of them (itself).
    scope_done = AcqRel;

    /// Whoever cancels: what was done before can be seen by whoever sees it (`cancel_read`).
    cancel_publish = Release;
    /// Whoever looks whether it is cancelled (`cancel_publish`).
    cancel_read = Acquire;

    /// Thread writes an event over an older one: whoever reads the new one sees how many there were (`event_read`).
    event_write = Release;
    /// Whoever reads an event of another thread (`event_write`).
    event_read = Acquire;
    /// Thread counts an event that it has written (`events_read`).
    events_publish = Release;
    /// Whoever reads events of another thread sees those that are counted (`events_publish`).
    events_read = Acquire;

    /// Owner of private jobs adds one: whoever raids them sees it (`newest_read`).
    newest_publish = Release;
    /// Thief looks at somebody's private jobs (`newest_publish`).
    newest_read = Acquire;
}

/// Fences, by name: see `idle/README.md`.
#[cfg(all(test, loom))]
pub(crate) const FENCES: &[&str] =
    &[SUBMIT, SLEEP, FOUND, END, OFFER, STOLEN, CHAIN, RAID, GIVE, REST, PUT, ASLEEP];

/// Between a push and the look for sleepers (`SLEEP`, `END`).
pub(crate) const SUBMIT: &str = "submit_fence";
/// Between the announcement of sleep and the last look for work (`SUBMIT`).
pub(crate) const SLEEP: &str = "sleep_fence";
/// Between a searcher's leaving and its look for more work (`SUBMIT`).
pub(crate) const FOUND: &str = "found_fence";
/// Between the announcement of the end and the sweep of what came too late (`SUBMIT`).
pub(crate) const END: &str = "end_fence";
/// Between the answer to a demand and the look whether something is published (`STOLEN`).
pub(crate) const OFFER: &str = "offer_fence";
/// Between the steal of what was published and the demand for more (`OFFER`).
pub(crate) const STOLEN: &str = "stolen_fence";
/// Light: between a change of the chain of private jobs and the owner's look at its demand (`RAID`).
pub(crate) const CHAIN: &str = "chain_fence";
/// Heavy: between a demand, or the announcement of a raid, and a look at the chain of another thread (`CHAIN`).
pub(crate) const RAID: &str = "raid_fence";
/// Between the gift of a batch and the look who rests (`REST`); see `pipeline::control`.
pub(crate) const GIVE: &str = "give_fence";
/// Between a worker's lying down and its last look at the lanes (`GIVE`).
pub(crate) const REST: &str = "rest_fence";
/// Light: between a result in the mail and the look who sleeps (`ASLEEP`).
pub(crate) const PUT: &str = "put_fence";
/// Heavy: between the announcement that whoever wants results sleeps and its last look into the mail (`PUT`).
pub(crate) const ASLEEP: &str = "asleep_fence";
