//! Every ordering that a protocol of this crate relies on, by name.
//!
//! An access that is not listed here is `Relaxed`, and a comment there says why. `docs/ORDERINGS.md` has the
//! table: the partner of each, what breaks without it, and the model that shows it. Under loom each can be
//! weakened by its name; the fences are listed as well, and can be removed.

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

        /// The names of these orderings.
        #[cfg(all(test, loom))]
        pub(crate) const ORDERINGS: &[&str] = &[$(stringify!($name)),*];
    };
}

orderings! {
    /// The runner finds the handle gone: what was done through the handle is visible (`handle_leaves`).
    start_alone = Acquire;
    /// The queue's side lets go: the outcome becomes visible, and if the handle's side went first, it is done with
    /// the slot (`outcome_read`, `handle_leaves`).
    queue_leaves = AcqRel;
    /// The handle's side lets go, with the same two effects (`queue_leaves`, `start_alone`).
    handle_leaves = AcqRel;
    /// The handle's side sees that the task is done: it sees the outcome (`queue_leaves`).
    outcome_read = Acquire;
    /// The handle's side registers a listener: the runner and those who push parts see the listener (`queue_leaves`,
    /// `listener_read`).
    listener_publish = Release;
    /// A part of what a thread waits for wakes that thread: it sees the listener (`listener_publish`).
    listener_read = Acquire;

    /// Slots go back to their slab: the thread that frees it does so after all others have used theirs (itself).
    slot_return = AcqRel;

    /// The end of a task is counted after its submission (`count_read`).
    count_publish = Release;
    /// A reader that reads the ends first does not see one without its submission (`count_publish`).
    count_read = Acquire;

    /// Entries of a batch have their outcomes: the last task to say so sees all of them (itself).
    batch_done = AcqRel;

    /// A thread returns some of the count of a scope: what the last one does comes after all parts (itself).
    scope_done = AcqRel;

    /// A token is cancelled: what was done before is visible to a thread that sees it (`cancel_read`).
    cancel_publish = Release;
    /// A thread looks whether a token is cancelled (`cancel_publish`).
    cancel_read = Acquire;

    /// A thread overwrites an older event: a reader of the new one sees how many there were (`event_read`).
    event_write = Release;
    /// A reader reads an event of another thread (`event_write`).
    event_read = Acquire;
    /// A thread counts an event that it has written (`events_read`).
    events_publish = Release;
    /// A reader of another thread's events sees those that are counted (`events_publish`).
    events_read = Acquire;

    /// A worker waits for its turn at the source of a pipeline: who grants it sees its bit (`turn_grant`).
    turn_wait = Release;
    /// A thread grants the next pull from the source of a pipeline to a worker (`turn_wait`, `turn_take`).
    turn_grant = AcqRel;
    /// A worker that has been granted a pull sees what it has been granted (`turn_grant`).
    turn_take = Acquire;

    /// The owner of private jobs or tasks adds one: a thief that raids them sees it (`newest_read`).
    newest_publish = Release;
    /// A thief looks at another thread's private jobs or tasks (`newest_publish`).
    newest_read = Acquire;
}

/// Fences, by name: see `idle/README.md`.
#[cfg(all(test, loom))]
pub(crate) const FENCES: &[&str] = &[
    SUBMIT, SLEEP, FOUND, END, OFFER, STOLEN, CHAIN, RAID, LISTEN, VISIT, RETURN, GIVE, REST, PUT,
    ASLEEP,
];

/// Between a push and the look for sleepers (`SLEEP`, `END`).
pub(crate) const SUBMIT: &str = "submit_fence";
/// Between the announcement of sleep and the last look for work (`SUBMIT`).
pub(crate) const SLEEP: &str = "sleep_fence";
/// Between the end of a search and the look for more work (`SUBMIT`).
pub(crate) const FOUND: &str = "found_fence";
/// Between the announcement of the end and the sweep of what came too late (`SUBMIT`).
pub(crate) const END: &str = "end_fence";
/// Between taking a demand and the look whether a job is published (`STOLEN`).
pub(crate) const OFFER: &str = "offer_fence";
/// Between the steal of a published job and the demand for another (`OFFER`).
pub(crate) const STOLEN: &str = "stolen_fence";
/// Light: between a change of the private jobs or tasks and the owner's look at its demand (`RAID`).
pub(crate) const CHAIN: &str = "chain_fence";
/// Heavy: between a demand, or the announcement of a raid, and a look at what another thread keeps private (`CHAIN`).
pub(crate) const RAID: &str = "raid_fence";
/// Between the registration of a listener and the look for parts to run (`SUBMIT`); see `worker/README.md`.
pub(crate) const LISTEN: &str = "listen_fence";
/// Between the announcement of a guest and its first look at its demand (`SLEEP`).
pub(crate) const VISIT: &str = "visit_fence";
/// Between the announcement that a worker may be woken again, after a guest has left, and the guest's last look for it
/// (`SUBMIT`).
pub(crate) const RETURN: &str = "return_fence";
/// Between a batch in a worker's queue and the look which workers are inactive (`REST`); see `pipeline/README.md`.
pub(crate) const GIVE: &str = "give_fence";
/// Between a worker's announcement that it is inactive and its last look at the queues (`GIVE`).
pub(crate) const REST: &str = "rest_fence";
/// Light: between a result in an outbox and the look whether the consumer sleeps (`ASLEEP`).
pub(crate) const PUT: &str = "put_fence";
/// Heavy: between the announcement that the consumer sleeps and its last look into the outboxes (`PUT`).
pub(crate) const ASLEEP: &str = "asleep_fence";
