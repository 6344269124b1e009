//! The bound on queued tasks: permits to queue a task, and the spawners that wait for one.
//!
//! A permit travels with the closure of a task and is dropped when the closure starts to run, or is dropped without
//! having run. A permit that is dropped goes to the spawner that has waited longest. So while a spawner waits, no other
//! thread can take a permit, and spawners are admitted in the order in which they came.
//!
//! Some callers do not wait, and exceed the bound instead, because nobody could give them a permit, or not soon:
//!
//! * A task whose core no other thread can take over at once. Tasks that spawn tasks that spawn would otherwise need a thread
//!   each, and would get them only after a grace period (step H3 of `README.md`): such a program took 5 ms for each task.
//! * A hook at the start or the end of a thread, or one that names a thread. The thread has no core there, and is about to
//!   become the only one that runs tasks, or has left the pool.
//! * A task that runs on top of a spawner that waits, in a pool that may have no more threads (step H4 of `README.md`). The
//!   next permit may be for the spawner beneath it, which cannot go on before it. (If it waits for a spawner on another thread
//!   that is behind the one beneath it, both wait for ever. This is the exception of step H4.)

use std::cell::Cell;
use std::collections::VecDeque;

use crate::sync::{Arc, Mutex, lock, per_thread, try_lock};
use crate::task::Promise;
use crate::worker::current::{current_pool, with_worker};
use crate::worker::wait::wait;

/// The bound of a pool.
pub(crate) struct Limit {
    bound: usize,
    state: Mutex<State>,
}

struct State {
    /// The number of permits that are in use. Exceeds the bound after a batch, and by callers that do not wait.
    queued: usize,
    /// Empty unless as many permits are in use as the bound allows.
    waiting: VecDeque<Waiting>,
    /// Has the pool been stopped? Then no thread outside of the pool waits any more.
    closed: bool,
}

/// A spawner that waits.
struct Waiting {
    /// Fulfilled when the spawner gets a permit, and dropped if it is to be refused.
    admitted: Promise<()>,
    caller: Caller,
}

/// What a thread that spawns is for the pool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// A thread outside of the pool.
    Outside,
    /// A task of the pool, or a guest.
    Task,
    /// Code of the pool's threads that does not wait.
    Impatient,
}

impl Caller {
    /// Returns what the calling thread is for the pool with that id.
    fn here(pool: usize) -> Self {
        let may_wait = with_worker(|worker| worker.may_wait_for_room());
        match may_wait.filter(|_| current_pool() == pool) {
            None => Self::Outside,
            Some(true) => Self::Task,
            Some(false) => Self::Impatient,
        }
    }
}

/// The right to queue one task.
pub(crate) struct Permit(Arc<Limit>);

/// What a limit shows of itself.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) bound: usize,
    pub(crate) queued: usize,
    pub(crate) waiting: usize,
}

per_thread! {
    /// Does a spawner wait on this thread, perhaps beneath what runs now?
    static WAITS: Cell<bool> = Cell::new(false);
}

/// Notes that a spawner waits on this thread, as long as it exists.
struct WaitsHere;

impl WaitsHere {
    fn begin() -> Self {
        WAITS.with(|waits| waits.set(true));
        Self
    }
}

impl Drop for WaitsHere {
    fn drop(&mut self) {
        // Nothing that runs on top of a spawner waits, so this was the only one.
        WAITS.with(|waits| waits.set(false));
    }
}

impl Limit {
    pub(crate) fn new(bound: usize) -> Self {
        let state = State { queued: 0, waiting: VecDeque::new(), closed: false };
        Self { bound, state: Mutex::new(state) }
    }

    /// Returns a permit, when there is one. Returns `None` if the pool with that id, to which the limit belongs, was
    /// stopped and the caller is not one of its threads: the pool refuses what the caller spawns.
    pub(crate) fn acquire(limit: &Arc<Self>, pool: usize) -> Option<Permit> {
        let caller = Caller::here(pool);
        let mut state = lock(&limit.state);
        if state.closed && caller == Caller::Outside {
            return None;
        }
        if state.queued < limit.bound || caller == Caller::Impatient || WAITS.with(Cell::get) {
            state.queued += 1;
            return Some(Permit(Arc::clone(limit)));
        }
        let (admitted, handle) = Promise::new();
        state.waiting.push_back(Waiting { admitted, caller });
        drop(state);
        let _waits = WaitsHere::begin();
        wait(&handle, pool);
        handle.take().ok().map(|_| Permit(Arc::clone(limit)))
    }

    /// Like [`acquire`](Self::acquire), but returns an error instead of waiting.
    pub(crate) fn try_acquire(limit: &Arc<Self>, pool: usize) -> Result<Option<Permit>, ()> {
        let caller = Caller::here(pool);
        let mut state = lock(&limit.state);
        if state.closed && caller == Caller::Outside {
            return Ok(None);
        }
        if state.queued < limit.bound {
            state.queued += 1;
            return Ok(Some(Permit(Arc::clone(limit))));
        }
        Err(())
    }

    /// Lets spawners outside of the pool wait no more, because the pool is stopping. Called after the pool has begun to
    /// refuse what they spawn. Tasks of the pool wait on: what they spawn still runs.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        let (outside, tasks): (VecDeque<_>, VecDeque<_>) =
            state.waiting.drain(..).partition(|waiting| waiting.caller == Caller::Outside);
        state.waiting = tasks;
        drop(state);
        // Wakes them.
        drop(outside);
    }

    /// Returns what there is, unless another thread holds the lock.
    pub(crate) fn room(&self) -> Option<Room> {
        let state = try_lock(&self.state)?;
        let (queued, waiting) = (state.queued, state.waiting.len());
        Some(Room { bound: self.bound, queued, waiting })
    }
}

impl Permit {
    /// Returns one more permit, beyond the bound if need be.
    pub(crate) fn another(&self) -> Self {
        lock(&self.0.state).queued += 1;
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        let next = if state.queued > self.0.bound { None } else { state.waiting.pop_front() };
        if next.is_none() {
            state.queued -= 1;
        }
        drop(state);
        if let Some(Waiting { admitted, .. }) = next {
            admitted.fulfil(Ok(Vec::new()), None);
        }
    }
}
