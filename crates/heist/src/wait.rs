//! What a thread does while it waits for a task.
//!
//! Outside of any pool it sleeps. On a worker it first tries to run the task itself: that is what it
//! needs, so nothing is buried under anything that does not depend on it. If the task is running
//! elsewhere, the worker's seat goes to another thread as soon as there is something to do, and
//! this one sleeps. So every stack is a chain of tasks each of which waits for the one above it,
//! and whoever waits at the top waits for a task that is running: no wait waits for ever that would
//! not on threads of their own.
//!
//! A stack is kept from growing without bound in the same way: a thread that has used a good part
//! of it does not run the task itself but lets the next thread do it, on a stack of its own.

use crate::idle::Rise;
use crate::listener::Listener;
use crate::member::{Host, Member, with_host};
use crate::queues::Queues;
use crate::sync::{Arc, pause, thread_local};
use crate::task::{Awaited, Refusal, Task};

/// A task is run on top of the one that waits for it if so many quarters of the stack are left for it.
const CLAIM_SHARE: usize = 3;
/// The same where there is no good choice.
const MAKE_DO_SHARE: usize = 2;

/// Looks at a task that is running elsewhere before sleeping is considered. To sleep and to be
/// woken takes some ten microseconds on a good day.
const LOOKS: u32 = 64;
/// Pauses between two looks.
const PAUSES: u32 = 8;

thread_local! {
    /// Of a thread that belongs to no pool.
    static LISTENER: Arc<Listener> = Arc::new(Listener::thread());
}

/// Returns when the task is done, whatever thread this is. `pool` is where it was spawned.
pub(crate) fn wait(awaited: &dyn Awaited, pool: usize) {
    if awaited.is_done() {
        return;
    }
    if with_host(|host| host.wait(awaited, pool)).is_none() {
        wait_outside(awaited);
    }
}

fn wait_outside(awaited: &dyn Awaited) {
    // A thread that is being torn down has no listener any more.
    let listener = LISTENER.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Listener::thread()));
    if awaited.listen(Arc::clone(&listener)) {
        while !awaited.is_done() {
            listener.berth().park();
        }
    }
}

/// Looks for a moment. Is it done?
fn watch(awaited: &dyn Awaited) -> bool {
    for _ in 0..LOOKS {
        if awaited.is_done() {
            return true;
        }
        (0..PAUSES).for_each(|_| pause());
    }
    false
}

impl<Q: Queues> Host for Member<Q> {
    fn submit(&self, task: Task, count: u64) {
        self.push(task, count);
    }

    fn wait(&self, awaited: &dyn Awaited, pool: usize) {
        let ours = pool == self.core.id();
        if ours && self.has_stack(CLAIM_SHARE) && self.run_awaited(awaited) {
            return;
        }
        if watch(awaited) || !awaited.listen(Arc::clone(&self.listener)) {
            return;
        }
        if self.seat.borrow().is_none() {
            // It has been away since it gave its seat, and is until it retires.
            return self.sleep_until(awaited);
        }
        self.core.idle.step_aside();
        self.wait_seated(awaited, ours);
        if self.seat.borrow().is_some() {
            self.core.idle.step_back();
        } else {
            self.sleep_until(awaited);
        }
    }
}

impl<Q: Queues> Member<Q> {
    /// Runs the task right here, unless it has started.
    fn run_awaited(&self, awaited: &dyn Awaited) -> bool {
        let Some(claimed) = awaited.claim() else { return false };
        if self.core.is_cancelling() {
            claimed.refuse(Refusal::Cancelled);
            self.with_tally(|tally| tally.one(|block| &block.cancellations));
        } else {
            self.count(claimed.execute(&self.core.config.on_panic));
        }
        claimed.done();
        true
    }

    /// Waits as an idle worker does, until the task is done or the seat has gone to another thread,
    /// which it does when there is work.
    fn wait_seated(&self, awaited: &dyn Awaited, ours: bool) {
        let core = &*self.core;
        let mut searching = false;
        while !awaited.is_done() {
            let found = {
                let seat = self.seat.borrow();
                let seat = seat.as_ref().expect("it is not given away but below");
                seat.next(core).or_else(|| seat.hunt(core))
            };
            if let Some(task) = found {
                self.leave_search(&mut searching);
                if awaited.is_done() {
                    return self.put_back(task);
                }
                match self.give_seat(task) {
                    Ok(()) => return,
                    Err(task) => self.make_do(task, awaited, ours),
                }
                continue;
            }
            let rise = core.idle.sleep(
                &self.listener,
                searching,
                || core.queues.any(),
                || awaited.is_done(),
                || self.with_tally(|tally| tally.one(|block| &block.parks)),
            );
            debug_assert!(
                matches!(rise, Rise::Early | Rise::Called),
                "no end while a thread is away"
            );
            searching = true;
        }
        self.leave_search(&mut searching);
    }

    fn leave_search(&self, searching: &mut bool) {
        let core = &*self.core;
        if std::mem::take(searching) && core.idle.leave_search(|| core.queues.any()) {
            self.with_tally(|tally| tally.one(|block| &block.wake_ups_sent));
        }
    }

    /// Nobody can take the seat: there are too many threads. So it is used here, on top of what waits,
    /// as long as there is stack. That may bury what the task waits for; to leave the seat empty may
    /// keep from running what everybody waits for.
    #[cold]
    fn make_do(&self, task: Task, awaited: &dyn Awaited, ours: bool) {
        if self.has_stack(MAKE_DO_SHARE) {
            return self.run(task);
        }
        self.put_back(task);
        if !(ours && self.run_awaited(awaited)) {
            self.sleep_until(awaited);
        }
    }

    fn sleep_until(&self, awaited: &dyn Awaited) {
        while !awaited.is_done() {
            self.listener.berth().park();
        }
    }

    /// Is at least this much of the stack, in quarters, not used?
    fn has_stack(&self, quarters: usize) -> bool {
        let size = self.core.config.stack_size;
        self.stack_used() < size - size / 4 * quarters
    }

    /// A task that was taken out of a queue and cannot be run here.
    fn put_back(&self, task: Task) {
        let core = &*self.core;
        self.with_tally(|tally| {
            core.queues.inject(task, tally);
            core.announce(tally);
        });
    }
}
