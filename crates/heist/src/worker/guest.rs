//! Guests: threads of no pool, which take part in the global pool while they run a join, a scope or a loop.
//!
//! To move a join to the pool and back takes ten microseconds and more, which is longer than many joins take. So a
//! thread of no pool runs it itself, and is a thread of the pool meanwhile: it has a place in the table, where the
//! workers find what it publishes and raid what it keeps private, and it waits as a thread without a core does
//! (`README.md`, W3 to W7). It never gets a core, and runs only parts of what it has come for.
//!
//! A thread keeps its place until it ends, because making one takes longer than a short visit. There are only so many
//! places for guests ([`Config::guests`](super::config::Config::guests)), because thieves look into all of them. A thread
//! that gets none has the pool run its join.

use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;

use crate::fork::demand::Demand;
use crate::fork::job;
use crate::sync::{Arc, Ordering, copies, thread_local};
use crate::worker::current::{begin_visit, end_visit};
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;
use crate::worker::table::Place;
use crate::worker::thread::WorkerThread;

thread_local! {
    /// The seat of this thread, which is a guest now and then. Empty during a visit.
    static SEAT: Cell<Option<Box<dyn Any>>> = Cell::new(None);
}

/// What a guest keeps from one visit to the next.
struct Seat<Q: PoolQueues>(ManuallyDrop<Box<WorkerThread<Q>>>);

impl<Q: PoolQueues> Seat<Q> {
    /// Returns a seat for the calling thread, unless there is no place for one more guest.
    fn new(shared: &Arc<Shared<Q>>) -> Option<Box<Self>> {
        let place = shared.enter_as_guest()?;
        let thread = Box::new(WorkerThread::guest(Arc::clone(shared), place));
        Some(Box::new(Self(ManuallyDrop::new(thread))))
    }

    fn is_of(&self, shared: &Arc<Shared<Q>>) -> bool {
        Arc::ptr_eq(&self.0.shared, shared)
    }
}

impl<Q: PoolQueues> Drop for Seat<Q> {
    fn drop(&mut self) {
        if self.0.shared.copy != copies() {
            // The place is one in another process, and its locks may be held by threads that are not here.
            return;
        }
        if let Some(chain) = &self.0.shared.table.entry(self.0.place.index).demand.chain {
            chain.remove();
        }
        job::leave_place();
        // SAFETY: this is the only place that takes it, and the seat is not used any more.
        let thread = unsafe { ManuallyDrop::take(&mut self.0) };
        let WorkerThread { shared, place, .. } = *thread;
        shared.leave_as_guest(place);
    }
}

impl<Q: PoolQueues> Shared<Q> {
    /// Returns a place for one more guest, unless there are as many as there may be.
    fn enter_as_guest(&self) -> Option<Place<Q>> {
        if self.guests.fetch_add(1, Ordering::Relaxed) < self.config.guests {
            // Even if there is only one worker, there is one that may want its jobs.
            let place = self.enter_among(self.config.workers.max(2), Demand::of_guest);
            if place.is_some() {
                return place;
            }
        }
        self.guests.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// Frees the place of a guest whose thread ends.
    fn leave_as_guest(&self, place: Place<Q>) {
        // The next thread in that place may be one of the pool's.
        self.table.entry(place.index).demand.begin_visit(false);
        self.leave(place);
        self.guests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// When a guest publishes jobs for workers that search. For a worker that sleeps it does so at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offers {
    AtOnce,
    /// When the visit has turned out not to be short.
    Later,
}

/// Calls a closure once on this thread, which belongs to no pool, as a guest of that pool. Returns `false`, and does not call it,
/// if the thread cannot be a guest: because there are too many, because too little of its stack is left, or because the pool is
/// stopping.
pub(crate) fn visit<Q: PoolQueues>(
    shared: &Arc<Shared<Q>>,
    offers: Offers,
    f: &mut dyn FnMut(),
) -> bool {
    shared.must_be_here();
    // A thread whose thread-locals are being destroyed has no seat any more, and gets none.
    let Ok(seat) = SEAT.try_with(Cell::take) else { return false };
    let seat = seat.and_then(|seat| seat.downcast::<Seat<Q>>().ok());
    let seat = seat.filter(|seat| seat.is_of(shared)).or_else(|| Seat::new(shared));
    let Some(seat) = seat else { return false };
    if !seat.0.has_room_to_visit() || !shared.idle.enter_guest(seat.0.place.index) {
        return false;
    }
    let (before, outer) = (Cell::new(0), job::root());
    Visit { seat: Some(seat), before, outer }.run(offers, f);
    true
}

/// A visit that is under way.
struct Visit<Q: PoolQueues> {
    /// There until the visit ends.
    seat: Option<Box<Seat<Q>>>,
    /// The id of the pool that the thread belonged to before: see [`begin_visit`].
    before: Cell<usize>,
    /// The root of the code around the visit.
    outer: usize,
}

impl<Q: PoolQueues> Visit<Q> {
    fn run(self, offers: Offers, f: &mut dyn FnMut()) {
        let thread = &**self.seat.as_ref().expect("there until the visit ends").0;
        let demand = &thread.shared.table.entry(thread.place.index).demand;
        thread.begin_visit(offers);
        // SAFETY: `thread` is a worker thread of the pool with that id, and the demand is that of its place. Both are kept by
        // the seat, which this visit holds until its end, on return and on unwinding, and which then waits in a
        // thread-local until it is dropped. That leaves the place.
        self.before.set(unsafe { begin_visit(thread.shared.id(), thread, demand) });
        // The root of what is forked is this call.
        let is_nested = job::has_flag(self.outer);
        let here = &self.outer;
        job::begin(if is_nested { job::nested_in(here) } else { (&raw const *here).addr() });
        f();
    }
}

impl<Q: PoolQueues> Drop for Visit<Q> {
    /// Ends the visit, after its closure has returned or panicked.
    fn drop(&mut self) {
        job::begin(self.outer);
        end_visit(self.before.get());
        let Some(seat) = self.seat.take() else { return };
        seat.0.end_visit();
        let (shared, place) = (&seat.0.shared, seat.0.place.index);
        if shared.idle.leave_guest(place) {
            shared.look_for_sleeper(place);
        }
        if shared.idle.end_after_guest(|| shared.any()) {
            shared.finish_shutdown();
        }
        // If the thread-locals are being destroyed, the seat is dropped.
        let _ = SEAT.try_with(|own| own.set(Some(seat as Box<dyn Any>)));
    }
}
