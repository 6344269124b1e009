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

/// A task is run on top of the one that waits for it while the stack is used up to one part in
/// this many. The rest is for the task.
const STACK_SHARE: usize = 4;

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
    let listener = LISTENER.with(Arc::clone);
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
        let shallow = self.stack_used() < self.core.config.stack_size / STACK_SHARE;
        if ours && shallow && self.run_awaited(awaited) {
            return;
        }
        if watch(awaited) || !awaited.listen(Arc::clone(&self.listener)) {
            return;
        }
        self.core.idle.step_aside();
        if self.wait_seated(awaited) {
            self.core.idle.step_back();
            return;
        }
        // The seat is gone, or nobody could be found for it. In the latter case the task may still
        // wait in a queue, for a thread that has too little stack left: better that than never.
        let seated = self.seat.borrow().is_some();
        if !(seated && ours && self.run_awaited(awaited)) {
            while !awaited.is_done() {
                self.listener.berth().park();
            }
        }
        if seated {
            self.core.idle.step_back();
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

    /// Waits as an idle worker does, and gives the seat away when there is work. `true`: the task
    /// is done and the seat is still here.
    fn wait_seated(&self, awaited: &dyn Awaited) -> bool {
        let core = &*self.core;
        let mut searching = false;
        loop {
            let found = {
                let seat = self.seat.borrow();
                let Some(seat) = &*seat else { return false };
                seat.next(core).or_else(|| seat.hunt(core))
            };
            if searching && (found.is_some() || awaited.is_done()) {
                searching = false;
                if core.idle.leave_search(|| core.queues.any()) {
                    self.with_tally(|tally| tally.one(|block| &block.wake_ups_sent));
                }
            }
            if let Some(task) = found {
                if awaited.is_done() {
                    self.put_back(task);
                    return true;
                }
                match self.give_seat(task) {
                    Ok(()) => return false,
                    Err(task) => {
                        self.put_back(task);
                        return false;
                    }
                }
            }
            if awaited.is_done() {
                return true;
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
