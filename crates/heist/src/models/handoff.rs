//! Models of cores that change hands: none is lost, and a thread that has left the list of those that want one either has
//! a core or gets none.

use loom::thread;

use super::explore::{Model, models};
use super::fork::Once;
use crate::queues::Stealing;
use crate::stats::Ledger;
use crate::sync::Arc;
use crate::task::listener::Listener;
use crate::worker::config::Config;
use crate::worker::core::Core;
use crate::worker::handoff::{Grant, HandOff, HandedCore, Mailbox, Need};
use crate::worker::shared::Shared;
use crate::worker::thread::WorkerThread;

pub(super) const LOST: &str = "a core is lost";

/// Returns a pool without threads, which may have `max_threads` of them.
pub(super) fn pool(workers: usize, max_threads: usize) -> Arc<Shared<Stealing>> {
    Arc::new(Shared::new(Config::plain(workers, max_threads)))
}

pub(super) fn thread_of(shared: &Arc<Shared<Stealing>>) -> WorkerThread<Stealing> {
    let place = shared.enter().expect("there is a place");
    let thread = WorkerThread::new(Arc::clone(shared), place);
    thread.in_service.set(true);
    thread
}

/// Ends a thread. Returns whether it has a core, and uses it.
fn has_core(thread: WorkerThread<Stealing>, used: &[Once]) -> bool {
    let core = thread.release_core();
    assert!(thread.mailbox.take().is_none(), "a core has come too late");
    let WorkerThread { shared, place, .. } = thread;
    shared.leave(place);
    if let Some(core) = &core {
        used[core.index].happen();
    }
    core.is_some()
}

/// A worker between two tasks: gives its core to a thread that wants one, if it sees such a thread. Returns whether it
/// still has a core.
fn work(shared: &Arc<Shared<Stealing>>, core: usize, used: &[Once]) -> bool {
    let thread = thread_of(shared);
    thread.acquire_core(Box::new(Core::new(core, shared.ledger.of_worker(core))));
    used[core].happen();
    if shared.handoff.is_wanted() {
        let core = thread.release_core().expect("it has one");
        if let Err(core) = thread.give_back(core) {
            thread.acquire_core(core);
        }
    }
    has_core(thread, used)
}

/// What a thread does when it leaves the list of those that want a core.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Right,
    /// It looks for a core before it leaves the list.
    LookEarly,
}

/// A thread whose wait is over wants a core, looks for it once, and waits again, while the workers give theirs away.
fn return_against_wait(workers: usize, way: Way) {
    let shared = pool(workers, workers + 1);
    let used: Arc<[Once]> = (0..workers).map(|_| Once::new()).collect();
    let others: Vec<_> = (0..workers)
        .map(|core| {
            let (shared, used) = (Arc::clone(&shared), Arc::clone(&used));
            thread::spawn(move || work(&shared, core, &used))
        })
        .collect();
    let thread = thread_of(&shared);
    shared.idle.enter_away(0);
    thread.want_core();
    thread.pick_up_core();
    match way {
        Way::Right => thread.pick_up_core_or_wait(),
        Way::LookEarly => {
            thread.pick_up_core();
            drop(shared.handoff.want_no_more(&thread.mailbox));
        }
    }
    assert!(!shared.handoff.is_wanted(), "nobody wants a core any more");
    let mut cores = usize::from(has_core(thread, &used));
    for other in others {
        cores += usize::from(other.join().unwrap());
    }
    assert_eq!(cores, workers, "{LOST}");
}

/// A thread that waits gives its core to a standby thread, which comes at the same time; else it gives back the grant and
/// keeps the core. Then the pool ends.
fn standby_against_end(declines: bool) {
    let handoff = Arc::new(HandOff::new(1, 2));
    let standby = thread::spawn({
        let handoff = Arc::clone(&handoff);
        move || {
            let mailbox = Mailbox::new(Arc::new(Listener::thread()), 1);
            let handed = handoff.stand_by(&Arc::new(mailbox));
            if handed.is_some() {
                handoff.close();
            }
            handed.is_some()
        }
    });
    let core = Box::new(Core::new(0, Ledger::new(1, 1).of_worker(0)));
    let first = handoff.grant(Need::First, 0);
    if declines {
        handoff.decline(first);
    }
    let kept = match handoff.grant(Need::First, 0) {
        Grant::Standby(standby) => {
            handoff.hand_over(&standby, HandedCore { core, first: None });
            false
        }
        grant => {
            handoff.decline(grant);
            handoff.close();
            true
        }
    };
    assert!(kept != standby.join().unwrap(), "{LOST}");
}

models! {
    handoff_return_against_wait: || return_against_wait(1, Way::Right), None, 900;
    handoff_two_return_against_wait: || return_against_wait(2, Way::Right), Some(3), 7_500;
    handoff_standby_against_end: || standby_against_end(true), None, 95;
}

/// A core is in the mailbox of a thread that has left the list.
pub(crate) const LOOK_EARLY: Model = Model {
    name: "handoff_look_early",
    run: || return_against_wait(1, Way::LookEarly),
    preemptions: None,
    floor: 0,
};

/// A grant is forgotten, and its thread sleeps for ever.
pub(crate) const FORGOTTEN_GRANT: Model = Model {
    name: "handoff_forgotten_grant",
    run: || standby_against_end(false),
    preemptions: None,
    floor: 0,
};

pub(crate) const WRONG: &[Model] = &[LOOK_EARLY, FORGOTTEN_GRANT];
