//! What became of each task of a pool, to be compared with what the pool has counted.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use heist::Stats;

use super::PLANNED;
use super::tally::Tally;

/// Tasks are numbered as they are admitted.
pub(super) struct Book {
    /// How many may be admitted,
    most: usize,
    /// and how many were, or wanted to be.
    admitted: AtomicUsize,
    /// Which of them have run.
    ran: Tally,
    /// Whose closures are gone.
    gone: Tally,
    panicked: AtomicU64,
    /// Is the pool stopped before all is spawned?
    early: bool,
    /// The first thing that was wrong.
    wrong: Mutex<Option<String>>,
}

/// A task's place in the book. Its closure owns it.
pub(super) struct Ticket {
    book: Arc<Book>,
    number: usize,
}

impl Book {
    pub(super) fn new(most: usize, early: bool) -> Self {
        Self {
            most,
            admitted: AtomicUsize::new(0),
            ran: Tally::new(most),
            gone: Tally::new(most),
            panicked: AtomicU64::new(0),
            early,
            wrong: Mutex::new(None),
        }
    }

    /// A place for one more task, unless there are enough.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Ticket> {
        let number = self.admitted.fetch_add(1, Ordering::Relaxed);
        (number < self.most).then(|| Ticket { book: Arc::clone(self), number })
    }

    pub(super) fn tasks(&self) -> usize {
        self.admitted.load(Ordering::Relaxed).min(self.most)
    }

    pub(super) fn ends_early(&self) -> bool {
        self.early
    }

    pub(super) fn note(&self, wrong: String) {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(wrong);
    }

    /// A panic has come to those who wait, or to the hook.
    pub(super) fn told_of(&self, message: &str) {
        if message != PLANNED {
            self.note(format!("a task panicked: {message}"));
        }
    }

    /// After the pool has ended: each task has run once and is gone, and the counters of the pool say the same.
    pub(super) fn check(&self, stats: Option<&Stats>) -> Result<(), String> {
        if let Some(wrong) = self.wrong.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(wrong);
        }
        // Those that were never admitted are missing, and are no loss.
        let never = self.most - self.tasks();
        let (lost, doubled) = (self.ran.lost() - never, self.ran.doubled());
        if doubled > 0 || lost > 0 && !self.early {
            return Err(format!("{lost} tasks lost, {doubled} run twice, of {}", self.tasks()));
        }
        let (kept, freed) = (self.gone.lost() - never, self.gone.doubled());
        if kept + freed > 0 {
            return Err(format!(
                "{kept} closures never dropped, {freed} dropped twice, of {}",
                self.tasks()
            ));
        }
        stats.map_or(Ok(()), |stats| self.compare(stats, (self.tasks() - lost) as u64))
    }

    fn compare(&self, stats: &Stats, ran: u64) -> Result<(), String> {
        let panicked = self.panicked.load(Ordering::Relaxed);
        let tasks = self.tasks() as u64;
        let ended = stats.total.tasks_completed + stats.total.panics + stats.total.cancellations;
        let submitted = if self.early {
            stats.total.tasks_submitted <= tasks
        } else {
            stats.total.tasks_submitted == tasks
        };
        let right = submitted
            && stats.total.tasks_submitted == ended
            && (stats.total.tasks_completed, stats.total.panics) == (ran - panicked, panicked);
        if right {
            Ok(())
        } else {
            Err(format!(
                "{tasks} tasks, {ran} ran, {panicked} panicked, but the pool counted {:?}",
                stats.total
            ))
        }
    }
}

impl Ticket {
    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn run(&mut self) {
        self.book.ran.mark(self.number);
    }

    /// It is about to.
    pub(super) fn panic(&mut self) {
        self.book.panicked.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.book.gone.mark(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three tasks that have run, and their counters.
    fn three() -> (Arc<Book>, Stats) {
        let book = Arc::new(Book::new(3, false));
        (0..3).for_each(|_| book.admit().unwrap().run());
        let mut stats = Stats::default();
        (stats.total.tasks_submitted, stats.total.tasks_completed) = (3, 3);
        (book, stats)
    }

    #[test]
    fn what_is_right_passes() {
        let (book, stats) = three();
        assert_eq!(book.check(Some(&stats)), Ok(()));
        assert!(book.admit().is_none());
        assert_eq!(book.tasks(), 3);
    }

    #[test]
    fn a_lost_task_is_found_unless_the_pool_ends_early() {
        for early in [false, true] {
            let book = Arc::new(Book::new(5, early));
            book.admit().unwrap().run();
            drop(book.admit());
            assert_eq!(book.check(None).is_err(), !early);
        }
    }

    #[test]
    fn a_doubled_task_is_found() {
        let book = Arc::new(Book::new(5, true));
        let mut ticket = book.admit().unwrap();
        ticket.run();
        ticket.run();
        drop(ticket);
        assert_eq!(book.check(None), Err("0 tasks lost, 1 run twice, of 1".to_owned()));
    }

    #[test]
    fn a_closure_that_is_leaked_is_found() {
        let book = Arc::new(Book::new(5, false));
        let mut ticket = book.admit().unwrap();
        ticket.run();
        std::mem::forget(ticket);
        assert!(book.check(None).unwrap_err().contains("1 closures never dropped"));
    }

    #[test]
    fn counters_that_do_not_add_up_are_found() {
        let (book, right) = three();
        for spoil in [
            |stats: &mut Stats| stats.total.tasks_submitted += 1,
            |stats: &mut Stats| stats.total.cancellations += 1,
            |stats: &mut Stats| {
                stats.total.panics += 1;
                stats.total.tasks_completed -= 1;
            },
        ] {
            let mut stats = right.clone();
            spoil(&mut stats);
            assert!(book.check(Some(&stats)).is_err(), "{stats:?}");
        }
    }

    #[test]
    fn a_panic_that_was_not_planned_is_found() {
        let (book, _) = three();
        book.told_of(PLANNED);
        assert_eq!(book.check(None), Ok(()));
        book.told_of("index out of bounds");
        assert!(book.check(None).is_err());
    }
}
