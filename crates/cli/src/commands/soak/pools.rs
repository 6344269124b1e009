//! A pool under load: tasks that spawn tasks, wait for them or do not, come in batches, panic, and are cut off by a stop.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use heist::{JoinError, JoinHandle, Pool, Strategy};

use super::PLANNED;
use super::book::{Book, Ticket};
use super::die::Die;
use super::trouble::Trouble;

/// How a pool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stop,
    Drop,
    /// While threads outside still spawn.
    StopEarly,
    StopNowEarly,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    strategy: Strategy,
    workers: usize,
    /// Threads outside that spawn, and how many trees of tasks each plants.
    outsiders: u64,
    roots: u64,
    /// The most tasks there are.
    tasks: usize,
    /// One of so many panics; 0 is none.
    panics: u64,
    end: End,
    /// How many events of each thread it remembers; 0 is none.
    trace: usize,
    seed: u64,
}

impl Shape {
    pub(super) fn random(die: &mut Die, most: u64) -> Self {
        Self {
            strategy: die.pick(&Strategy::ALL),
            workers: die.pick(&[1, 2, 3, 4, 8]),
            outsiders: 1 + die.roll(4),
            roots: 1 + die.roll(40),
            tasks: 1 + die.roll(most) as usize,
            panics: die.pick(&[0, 0, 5, 30]),
            end: die.pick(&[End::Stop, End::Stop, End::Drop, End::StopEarly, End::StopNowEarly]),
            trace: die.pick(&[0, 0, 0, 64]),
            seed: die.roll(1 << 30),
        }
    }

    fn ends_early(&self) -> bool {
        matches!(self.end, End::StopEarly | End::StopNowEarly)
    }

    /// How many tasks there were, or what is wrong.
    pub(super) fn run(&self) -> Result<u64, Trouble> {
        let book = Arc::new(Book::new(self.tasks, self.ends_early()));
        let hook = Arc::clone(&book);
        let builder = Pool::builder()
            .workers(self.workers)
            .strategy(self.strategy)
            .trace(self.trace)
            .on_panic(move |panic| hook.told_of(panic.message()));
        let pool = Arc::new(builder.build()?);
        thread::scope(|scope| {
            let plant = |number: u64| {
                let grove =
                    Grove { pool: Arc::clone(&pool), book: Arc::clone(&book), shape: *self };
                let plant = move || grove.plant(self.seed << 8 | number);
                thread::Builder::new().spawn_scoped(scope, plant)
            };
            let outsiders: Vec<_> = (0..self.outsiders).map(plant).collect::<Result<_, _>>()?;
            self.cut_off(&pool);
            outsiders
                .into_iter()
                .for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            Ok::<_, Trouble>(())
        })?;
        let stats = self.close(pool);
        book.check(stats.as_ref()).map_err(|wrong| format!("{wrong}, in {self:?}"))?;
        Ok(book.tasks() as u64)
    }

    /// After some time.
    fn cut_off(&self, pool: &Pool) {
        // Reading must disturb nobody.
        let traced = pool.trace_snapshot().is_some();
        assert_eq!(traced, self.trace > 0, "a trace that was not asked for, or none that was");
        if self.ends_early() {
            (0..self.seed % 200).for_each(|_| thread::yield_now());
        }
        match self.end {
            End::StopEarly => pool.stop(),
            End::StopNowEarly => pool.stop_now(),
            End::Stop | End::Drop => {}
        }
    }

    /// All threads of the pool are gone when this returns. A pool that is dropped tells nothing any more.
    fn close(&self, pool: Arc<Pool>) -> Option<heist::Stats> {
        if self.end == End::Drop {
            // The last task to hold it would only ask for the stop.
            while Arc::strong_count(&pool) > 1 {
                thread::yield_now();
            }
            return None;
        }
        pool.stop();
        Some(pool.stats())
    }
}

/// Where tasks are planted: what each of them needs to spawn others.
struct Grove {
    pool: Arc<Pool>,
    book: Arc<Book>,
    shape: Shape,
}

/// A handle, and what must come out of it.
type Expected<T> = (JoinHandle<T>, T);

impl Grove {
    fn again(&self) -> Self {
        Self { pool: Arc::clone(&self.pool), book: Arc::clone(&self.book), shape: self.shape }
    }

    /// From a thread outside.
    fn plant(&self, seed: u64) {
        let mut die = Die::new(seed);
        for root in 0..self.shape.roots {
            // On a pool that has stopped it would panic.
            if die.roll(8) == 0 && !self.shape.ends_early() {
                let Some(ticket) = self.book.admit() else { return };
                let number = ticket.number();
                let result = catch_unwind(AssertUnwindSafe(|| {
                    self.pool.install(|| self.node(ticket, seed ^ root << 40))
                }));
                self.book.expect_of_install(result, number);
            } else if !self.branch(&mut die, seed ^ root << 40, &mut Vec::new(), &mut Vec::new()) {
                return;
            }
        }
    }

    /// One task: some children, handled in some ways, and an end of some kind. Returns its number.
    fn node(&self, mut ticket: Ticket, seed: u64) -> usize {
        ticket.run();
        let mut die = Die::new(seed);
        let (mut ones, mut batches) = (Vec::new(), Vec::new());
        for child in 0..die.roll(6) {
            let seed = seed.wrapping_mul(31).wrapping_add(child);
            if !self.branch(&mut die, seed, &mut ones, &mut batches) {
                break;
            }
        }
        if die.roll(2) == 0 {
            ones.reverse();
        }
        ones.into_iter().for_each(|(handle, number)| self.book.expect(handle.join(), &number));
        batches.into_iter().for_each(|(handle, numbers)| self.book.expect(handle.join(), &numbers));
        if self.shape.panics > 0 && die.roll(self.shape.panics) == 0 {
            ticket.panic();
            resume_unwind(Box::new(PLANNED));
        }
        ticket.number()
    }

    /// A task or a batch of them, waited for at once, later, or never. Is there room for more?
    fn branch(
        &self,
        die: &mut Die,
        seed: u64,
        ones: &mut Vec<Expected<usize>>,
        batches: &mut Vec<Expected<Vec<usize>>>,
    ) -> bool {
        if die.roll(4) == 0 {
            let tickets: Vec<_> = (0..die.roll(6)).map_while(|_| self.book.admit()).collect();
            let numbers: Vec<_> = tickets.iter().map(Ticket::number).collect();
            let tasks = tickets.into_iter().map(|ticket| {
                let (grove, seed) = (self.again(), seed ^ (ticket.number() as u64) << 20);
                move || grove.node(ticket, seed)
            });
            let handle = self.pool.spawn_batch(tasks);
            match die.roll(3) {
                0 => drop(handle),
                1 => self.book.expect(handle.join(), &numbers),
                _ => batches.push((handle, numbers)),
            }
            return true;
        }
        let Some(ticket) = self.book.admit() else { return false };
        let (number, grove) = (ticket.number(), self.again());
        let handle = if die.roll(3) == 0 {
            // Too large for a slot.
            let ballast = [seed; 20];
            self.pool.spawn(move || grove.node(ticket, ballast[7]))
        } else {
            self.pool.spawn(move || grove.node(ticket, seed))
        };
        match die.roll(3) {
            0 => drop(handle),
            1 => self.book.expect(handle.join(), &number),
            _ => ones.push((handle, number)),
        }
        true
    }
}

impl Book {
    fn expect_of_install(&self, result: thread::Result<usize>, number: usize) {
        match result {
            Ok(got) => self.expect(Ok(got), &number),
            Err(payload) => self.told_of(crate::exit::panic_message(&*payload)),
        }
    }

    /// A result is that of its own task, and its absence has a reason.
    fn expect<T: PartialEq + std::fmt::Debug>(&self, result: Result<T, JoinError>, expected: &T) {
        match result {
            Ok(got) if got == *expected => {}
            Ok(got) => self.note(format!("{got:?} came out of the handle of {expected:?}")),
            Err(JoinError::Panicked(panic)) => self.told_of(panic.message()),
            Err(JoinError::Cancelled | JoinError::Stopped) if self.ends_early() => {}
            Err(error) => self.note(format!("{error}, of {expected:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shapes_are_right() {
        for seed in 0..150 {
            let shape = Shape::random(&mut Die::new(seed), 60);
            assert_eq!(shape.run().map(|_| ()), Ok(()), "seed {seed}");
        }
    }

    #[test]
    fn a_result_of_another_task_is_found() {
        let book = Book::new(2, false);
        book.expect(Ok(1), &2);
        assert!(book.check(None).unwrap_err().contains("came out of the handle of 2"));
    }

    #[test]
    fn a_cancelled_task_is_wrong_unless_the_pool_ends_early() {
        for (early, wrong) in [(false, true), (true, false)] {
            let book = Book::new(0, early);
            book.expect(Err(JoinError::Cancelled), &0);
            assert_eq!(book.check(None).is_err(), wrong);
        }
    }
}
