//! The queue between the senders of a pipeline and its feed, and the line of senders that wait for room (steps F1 to F6 of
//! `../README.md`).

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use crate::panic::contain_each;
use crate::pipeline::control::Control;
use crate::sync::{Arc, Instant, Mutex, lock};
use crate::task::{Promise, TaskHandle};

/// The queue between the [senders](super::Sender) and the [`Feed`](super::Feed). One lock protects all of it.
///
/// If a sender waits, the queue is full: every step that makes room admits the first senders of the line in the same critical
/// section.
pub struct Queue<T> {
    items: VecDeque<T>,
    /// The number of items that the feed has taken out together and has not passed on. They still take up room.
    staged: usize,
    capacity: usize,
    /// The number of senders that have not been dropped.
    senders: usize,
    /// Whether the pipeline is gone, or its run has ended or failed: no item will be processed any more.
    closed: bool,
    /// The senders that wait for room, the first one in front. Their tickets ascend.
    line: VecDeque<Waiting<T>>,
    /// The ticket of the next sender that waits.
    next_ticket: u64,
    /// The run is notified when there are as many items, or when no sender is left: it has found too few. [`NEVER`] if it does
    /// not wait for that.
    notify_at: usize,
    /// When each of the items has come, and how old one may become before it is processed in a batch that is not full.
    aging: Option<Aging>,
    /// The run to notify, once there is one.
    control: Option<Arc<Control>>,
}

/// The run does not wait to be notified.
const NEVER: usize = usize::MAX;

/// The ages of the items in the queue.
struct Aging {
    limit: Duration,
    /// When each item has come.
    arrivals: VecDeque<Instant>,
}

/// A sender that waits for room.
struct Waiting<T> {
    ticket: u64,
    item: T,
    answer: Answer<T>,
}

/// Tells a sender that waits what became of its item: it is returned if it was not admitted.
type Answer<T> = Promise<T>;

/// The place of a sender in the line. The handle becomes ready with the item, or without it if the item was admitted.
pub(super) struct Place<T> {
    pub(super) ticket: u64,
    pub(super) handle: TaskHandle<Vec<T>>,
}

/// What became of an item that a sender has offered.
pub(super) enum Offer<T> {
    /// It is in the queue. The caller notifies this run, if there is one, after it has released the lock.
    Taken(Option<Arc<Control>>),
    Full(T),
    Closed(T),
}

/// What the feed finds in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Items,
    /// There are none, and the next sender notifies the run.
    Nothing,
    /// There are none, and there will be none.
    End,
}

impl<T> Queue<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            items: VecDeque::new(),
            staged: 0,
            capacity,
            senders: 1,
            closed: false,
            line: VecDeque::new(),
            next_ticket: 0,
            notify_at: NEVER,
            aging: None,
            control: None,
        }
    }

    pub(super) fn attach(&mut self, control: &Arc<Control>) {
        self.control = Some(Arc::clone(control));
    }

    pub(super) fn control(&self) -> Option<Arc<Control>> {
        self.control.clone()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn add_sender(&mut self) {
        self.senders += 1;
    }

    /// Counts a sender less. Returns the run to notify, if that was the last one.
    pub(super) fn remove_sender(&mut self) -> Option<Arc<Control>> {
        self.senders -= 1;
        if self.senders == 0 { self.take_pending() } else { None }
    }

    /// Puts an item into the queue if there is room (F1).
    pub(super) fn offer(&mut self, item: T) -> Offer<T> {
        if self.closed {
            return Offer::Closed(item);
        }
        if !self.has_room() {
            return Offer::Full(item);
        }
        self.push(item);
        let enough = self.items.len() >= self.notify_at;
        Offer::Taken(if enough { self.take_pending() } else { None })
    }

    /// Takes items, at most `most`, and admits senders in their place until there are that many or none is left (F3).
    ///
    /// The caller answers the admitted senders after it has released the lock.
    pub(super) fn take(
        &mut self,
        most: usize,
        into: &mut Vec<T>,
        admitted: &mut Vec<Answer<T>>,
    ) -> Found {
        let mut left = most;
        loop {
            let count = left.min(self.items.len());
            into.extend(self.items.drain(..count));
            self.forget_arrivals(count);
            self.admit(admitted);
            left -= count;
            if count == 0 || left == 0 {
                break;
            }
        }
        if left < most { Found::Items } else { self.note_empty() }
    }

    /// Takes all items, which still take up room (F4).
    pub(super) fn stage(&mut self, into: &mut VecDeque<T>) -> Found {
        mem::swap(&mut self.items, into);
        self.staged = into.len();
        self.forget_arrivals(self.staged);
        if into.is_empty() { self.note_empty() } else { Found::Items }
    }

    /// Notes that so many of the staged items take up no room any more, and admits senders (F4).
    pub(super) fn release(&mut self, passed_on: usize, admitted: &mut Vec<Answer<T>>) {
        self.staged -= passed_on;
        self.admit(admitted);
    }

    /// Drops the items, and has all senders fail (F6).
    pub(super) fn close(queue: &Mutex<Self>) {
        Self::refuse(queue);
        let items = mem::take(&mut lock(queue).items);
        contain_each(items);
    }

    /// Returns theirs to the senders that wait, and has all senders fail from now on (F6). It drops no item: the calling
    /// thread may be any one.
    pub(super) fn refuse(queue: &Mutex<Self>) {
        let mut queue = lock(queue);
        queue.closed = true;
        let (line, control) = (mem::take(&mut queue.line), queue.control.take());
        drop(queue);
        drop(control);
        return_items(line);
    }

    /// Has all senders fail from now on, and the feed end when its items have been taken (F9). Returns the run that waits for a
    /// notification, if one does.
    pub(super) fn end(queue: &Mutex<Self>) -> Option<Arc<Control>> {
        let mut queue = lock(queue);
        queue.closed = true;
        let (line, pending) = (mem::take(&mut queue.line), queue.take_pending());
        drop(queue);
        return_items(line);
        pending
    }

    /// Takes a sender out of the line (F5). Returns its item, and the answer that nobody waits for any more; or `None` if it has
    /// been answered, or is about to be.
    pub(super) fn leave_line(&mut self, ticket: u64) -> Option<(T, Answer<T>)> {
        let place = self.line.binary_search_by_key(&ticket, |waiting| waiting.ticket).ok()?;
        let left = self.line.remove(place)?;
        Some((left.item, left.answer))
    }

    /// Sets how old an item may become before it is processed in a batch that is not full.
    pub(super) fn set_age_limit(&mut self, limit: Duration) {
        let arrivals = self.items.iter().map(|_| Instant::now()).collect();
        self.aging = Some(Aging { limit, arrivals });
    }

    pub(super) fn set_capacity(&mut self, items: usize) {
        self.capacity = items;
    }

    /// Returns whether to cut a batch of at most `most` items now, and not to wait for further ones. If not, the run is
    /// notified when there are enough.
    pub(super) fn is_due(&mut self, most: usize) -> bool {
        let wanted = most.min(self.capacity);
        let too_few = self.aging.is_some() && self.items.len() < wanted;
        if !too_few || self.items.is_empty() || self.senders == 0 || self.closed {
            return true;
        }
        if self.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
            return true;
        }
        self.notify_at = wanted;
        false
    }

    /// Returns when the oldest item is as old as it may become. `None` if there is no item, or no limit that is ever reached.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let Aging { limit, arrivals } = self.aging.as_ref()?;
        arrivals.front()?.checked_add(*limit)
    }

    fn push(&mut self, item: T) {
        self.items.push_back(item);
        if let Some(aging) = &mut self.aging {
            aging.arrivals.push_back(Instant::now());
        }
    }

    /// Notes that the first `count` items were taken.
    fn forget_arrivals(&mut self, count: usize) {
        if let Some(aging) = &mut self.aging {
            aging.arrivals.drain(..count);
        }
    }

    fn has_room(&self) -> bool {
        self.items.len() + self.staged < self.capacity
    }

    fn admit(&mut self, admitted: &mut Vec<Answer<T>>) {
        while self.has_room() {
            let Some(first) = self.line.pop_front() else { break };
            self.push(first.item);
            admitted.push(first.answer);
        }
    }

    /// Notes that the queue was found empty: the next sender must notify the run.
    fn note_empty(&mut self) -> Found {
        if self.senders == 0 || self.closed {
            return Found::End;
        }
        self.notify_at = 1;
        Found::Nothing
    }

    /// Returns the run that waits for a notification, if one does. The caller notifies it after it has
    /// released the lock of the queue.
    fn take_pending(&mut self) -> Option<Arc<Control>> {
        let waits = mem::replace(&mut self.notify_at, NEVER) != NEVER;
        if waits { self.control.clone() } else { None }
    }
}

/// Returns their items to the senders that were in the line.
fn return_items<T>(line: VecDeque<Waiting<T>>) {
    for Waiting { item, answer, .. } in line {
        answer.fulfil(Ok(vec![item]), None);
    }
}

impl<T: Send> Queue<T> {
    /// Puts a sender at the end of the line, because the queue is full (F2).
    ///
    /// The caller has found it full since it took the lock. Otherwise nobody might ever admit the sender.
    pub(super) fn line_up(&mut self, item: T) -> Place<T> {
        let (answer, handle) = Promise::new();
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.line.push_back(Waiting { ticket, item, answer });
        Place { ticket, handle }
    }
}
