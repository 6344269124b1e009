//! For an engine (`crate::engine`): one deque for each thread, which takes everything, in the order in which it comes, and
//! grows; a mailbox for each thread; and an injector. Nothing is moved but to be run.

use std::iter;

use heist_deque::Injector;
use heist_deque::growable::{self, Stealer, Worker};

use super::{Haul, Queues, haul, insist};
use crate::stats::Tally;
use crate::sync::{Mutex, lock};
use crate::task::Task;

/// What others can reach of a thread.
struct Reach {
    tasks: Stealer<Task>,
    /// For this thread and no other.
    mail: Injector<Task>,
}

pub(crate) struct Single {
    injector: Injector<Task>,
    threads: Box<[Reach]>,
    /// Which threads will never come. Held by whoever posts, so that all get their mail in the same order.
    absent: Mutex<Box<[bool]>>,
}

impl Queues for Single {
    type Own = Worker<Task>;

    const STEALS: bool = true;
    const PATIENT: bool = true;
    /// Loops one after the other, with a few microseconds in between, should find everybody up.
    const LOOKS: u32 = if cfg!(shuttle) { 2 } else { 128 };
    const NESTS: bool = true;

    fn new(workers: usize) -> (Self, Vec<Self::Own>) {
        let (own, threads): (Vec<_>, Vec<_>) = (0..workers)
            .map(|_| {
                let (own, tasks) = growable::new();
                (own, Reach { tasks, mail: Injector::new() })
            })
            .unzip();
        let absent = Mutex::new(vec![false; workers].into());
        (Self { injector: Injector::new(), threads: threads.into(), absent }, own)
    }

    #[inline]
    fn push(&self, own: &Self::Own, task: Task, _: Tally<'_>) {
        own.push(task);
    }

    #[inline]
    fn inject(&self, task: Task, _: Tally<'_>) {
        self.injector.push(task);
    }

    #[inline]
    fn pop(&self, own: &Self::Own, _: Tally<'_>) -> Option<Task> {
        own.pop()
    }

    fn push_job(&self, own: &Self::Own, job: Task, _: Tally<'_>) -> Result<(), Task> {
        own.push(job);
        Ok(())
    }

    fn pop_job(&self, own: &Self::Own, _: Tally<'_>) -> Option<Task> {
        own.pop()
    }

    fn steal_job(&self, victim: usize, tally: Tally<'_>) -> Haul {
        haul(self.threads[victim].tasks.steal(), 0, tally)
    }

    fn has_job(&self, victim: usize) -> bool {
        !self.threads[victim].tasks.is_empty()
    }

    fn draw(&self, _: &Self::Own, tally: Tally<'_>) -> Haul {
        haul(self.injector.steal(), 0, tally)
    }

    /// There is only the one deque, and that was tried.
    fn steal(&self, _: &Self::Own, _: usize, _: Tally<'_>) -> Haul {
        Haul::Nothing
    }

    fn withdraw(&self, tally: Tally<'_>) -> Option<Task> {
        insist(|| self.injector.steal(), tally)
    }

    fn any(&self) -> bool {
        !self.injector.is_empty() || self.threads.iter().any(|thread| !thread.tasks.is_empty())
    }

    fn post(&self, letters: impl Iterator<Item = Task>, sent: impl Fn(usize)) -> Vec<Task> {
        let mut left = Vec::new();
        let absent = lock(&self.absent);
        for (to, letter) in letters.enumerate() {
            if absent[to] {
                left.push(letter);
            } else {
                sent(to);
                self.threads[to].mail.push(letter);
            }
        }
        left
    }

    fn vacate(&self, of: usize, tally: Tally<'_>) -> Vec<Task> {
        let mut absent = lock(&self.absent);
        absent[of] = true;
        iter::from_fn(|| self.mail(of, tally)).collect()
    }

    fn mail(&self, of: usize, tally: Tally<'_>) -> Option<Task> {
        insist(|| self.threads[of].mail.steal(), tally)
    }

    fn has_mail(&self, of: usize) -> bool {
        !self.threads[of].mail.is_empty()
    }
}
