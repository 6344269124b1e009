//! Models of threads that wait as those of a pool do: with the real code of `worker/wait.rs`, on a pool without threads of
//! its own.

use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
use loom::thread;

use super::explore::{Model, models};
use super::handoff::pool;
use crate::queues::{Queues, Stealing};
use crate::sync::Arc;
use crate::task::listener::Listener;
use crate::task::{Awaited, JobKind, Promise, Task};
use crate::worker::core::Core;
use crate::worker::current::{AnyPool, enter};
use crate::worker::shared::Shared;
use crate::worker::table::Place;
use crate::worker::thread::WorkerThread;

/// The group of the parts.
const GROUP: usize = 16;

/// Calls `f` as a thread of the pool in the middle of a task.
///
/// Its place was taken by the thread that starts all others: loom does not see that the table publishes its entries.
fn in_task(
    shared: &Arc<Shared<Stealing>>,
    place: Place<Stealing>,
    f: impl FnOnce(&WorkerThread<Stealing>),
) {
    let thread = Box::new(WorkerThread::new(Arc::clone(shared), place));
    thread.in_service.set(true);
    // SAFETY: `thread` is a worker thread of the pool with that id, and the demand is one of that pool's demands.
    unsafe { enter(shared.id(), &*thread, &shared.demand_when_idle, || f(&thread)) };
    let WorkerThread { shared, place, .. } = *thread;
    shared.leave(place);
}

/// A part of a scope pushes another one, and goes on only when that has run. Nobody but the thread that waits for the
/// scope can run it. That thread has a core or has none.
fn part_against_sleep(with_core: bool) {
    let shared = pool(2, 2);
    let [place, of_pusher] = [(), ()].map(|()| shared.enter().expect("for two threads"));
    let (promise, end) = Promise::<()>::new();
    let pusher = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            in_task(&shared, of_pusher, |thread| {
                let me = Arc::new(Listener::thread());
                let ran = Arc::new(AtomicBool::new(false));
                let (has_run, notify) = (Arc::clone(&ran), Arc::clone(&me));
                let part = move || {
                    has_run.store(true, Relaxed);
                    notify.notify();
                };
                // SAFETY: it borrows nothing.
                let (task, handle) = unsafe { Task::job(GROUP, JobKind::Half, part) };
                drop(handle);
                thread.push_pieces(&mut std::iter::once(task), GROUP);
                // SAFETY: the promise is fulfilled below.
                unsafe { promise.reminder().send() };
                while !ran.load(Relaxed) {
                    me.sleeper().park();
                }
                promise.fulfil(Ok(Vec::new()), None);
            });
        }
    });
    in_task(&shared, place, |thread| {
        if with_core {
            thread.acquire_core(Box::new(Core::new(0, shared.ledger.of_worker(0))));
        } else {
            shared.idle.enter_away(0);
        }
        if end.listen(Arc::clone(&thread.listener)) {
            thread.wait_long(&end, Some(GROUP));
        }
        thread.pick_up_core_or_wait();
        assert_eq!(thread.release_core().is_some(), with_core, "it keeps its core");
    });
    pusher.join().unwrap();
    assert!(end.take().is_ok(), "the promise is kept");
}

/// A thread ends whose lane has a part, which stays there. The thread that waits for that part goes to sleep at the same
/// time. If the part is moved to another lane, it may be in neither when that thread looks.
fn end_against_sleep(moves: bool) {
    let shared = pool(2, 2);
    let [place, of_other] = [(), ()].map(|()| shared.enter().expect("for two threads"));
    let (promise, end) = Promise::<()>::new();
    // SAFETY: it borrows nothing.
    let (task, handle) =
        unsafe { Task::job(GROUP, JobKind::Half, move || promise.fulfil(Ok(Vec::new()), None)) };
    drop(handle);
    shared.queues.push_job(&of_other.own, task, GROUP);
    let other = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            if moves {
                let part = shared.queues.pop_job(&of_other.own);
                part.into_iter().for_each(|part| AnyPool::push_job(&*shared, part));
            }
            shared.leave(of_other);
        }
    });
    in_task(&shared, place, |thread| {
        shared.idle.enter_away(0);
        if end.listen(Arc::clone(&thread.listener)) {
            thread.wait_long(&end, Some(GROUP));
        }
        thread.pick_up_core_or_wait();
    });
    other.join().unwrap();
    assert!(end.take().is_ok(), "the promise is kept");
}

models! {
    helping_without_core: || part_against_sleep(false), Some(4), 3_000;
    helping_with_core: || part_against_sleep(true), Some(3), 17_000;
    helping_end_against_sleep: || end_against_sleep(false), None, 20;
}

/// A part that changes lanes, with no word to the thread that waits for it: this must fail.
pub(crate) const WRONG: &[Model] = &[Model {
    name: "helping_part_moved",
    run: || end_against_sleep(true),
    preemptions: None,
    floor: 0,
}];
