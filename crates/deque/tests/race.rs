//! The contract of the last item: an owner and a thief that race for it never both get it, and an owner
//! whose pop returned `None` finds nothing until it pushes again.
//!
//! There is no barrier between the rounds: the thief steals without a pause, and the owner adjusts its delay such
//! that its pop meets the thief. The test determines at the end which side got which item. A round therefore costs
//! no hand-over, and on a busy machine there are fewer races, but the test still ends.

#![cfg(all(feature = "std", not(any(loom, shuttle))))]

mod common;

use std::hint;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use common::{Flag, Flavour, LAST_NUMBER, Owner, Thief, assert_each_once, for_every_flavour};

for_every_flavour! {
    one_item,
    one_slot,
    two_items,
    two_thieves,
}

/// The rounds of a race for the last item.
const ROUNDS: usize = 1_000_000;
/// The rounds of its variations.
const FEWER_ROUNDS: usize = 300_000;
/// Each side must win at least this many items, or it was not a race.
const FLOOR: usize = 1000;
/// The race continues up to this number of rounds if a side has not won enough.
const MOST_ROUNDS: usize = 20 * ROUNDS;

/// Allows one race at a time, because a race needs both processors.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the owner waits before it pops, such that it meets the thief: longer after each item that
/// the owner has won, shorter after each that it has lost.
#[derive(Default)]
struct Aim {
    pause: usize,
}

impl Aim {
    /// A guess: longer than a push takes to become visible on the other processor.
    const LONGEST: usize = 20;

    fn pause(&self) {
        (0..self.pause).for_each(|_| hint::spin_loop());
    }

    fn correct(&mut self, won: usize, lost: usize) {
        self.pause = (self.pause + won).saturating_sub(lost).min(Self::LONGEST);
    }
}

/// The owner's part of the outcome of a race.
#[derive(Default)]
struct Outcome {
    pushed: usize,
    won: Vec<usize>,
    /// How often a pop found an item after one that returned `None`.
    revenants: usize,
}

/// The owner's side: pushes `items` items per round and pops until the deque is empty.
fn own(worker: &impl Owner<usize>, rounds: usize, items: usize) -> Outcome {
    let mut aim = Aim::default();
    let mut outcome = Outcome::default();
    for round in 1..=MOST_ROUNDS {
        let next = outcome.pushed + items;
        (outcome.pushed..next).for_each(|item| worker.push_patiently(item));
        outcome.pushed = next;
        // On a single processor the thief only runs if the owner yields.
        if round > rounds {
            thread::yield_now();
        }
        aim.pause();
        let before = outcome.won.len();
        outcome.won.extend(std::iter::from_fn(|| worker.pop()));
        let won = outcome.won.len() - before;
        outcome.revenants += usize::from(!worker.is_empty() || worker.len() > 0);
        outcome.revenants += usize::from(worker.pop().is_some());
        aim.correct(won, items - won.min(items));
        let fewest = outcome.won.len().min(outcome.pushed - outcome.won.len());
        if round >= rounds && fewest >= FLOOR {
            break;
        }
    }
    outcome
}

fn race<F: Flavour>(
    rounds: usize,
    items: usize,
    thieves: usize,
    (worker, stealer): (F::Worker<usize>, F::Stealer<usize>),
) {
    let _turn = alone();
    let over = Flag::default();
    let rob = || {
        let mut loot = Vec::new();
        while !over.is_up() {
            loot.extend(stealer.steal().success());
        }
        loot
    };
    let (outcome, loots) = thread::scope(|scope| {
        let thieves: Vec<_> = (0..thieves).map(|_| scope.spawn(rob)).collect();
        let up = over.up_after();
        let outcome = own(&worker, rounds, items);
        drop(up);
        let loots = thieves.into_iter().map(|thief| thief.join());
        let loots: Vec<Vec<usize>> = loots.map(|loot| loot.expect("a thief")).collect();
        (outcome, loots)
    });
    assert_eq!(outcome.revenants, 0, "a None was not final");
    let stolen: usize = loots.iter().map(Vec::len).sum();
    assert!(outcome.won.len() >= FLOOR, "the owner did not win");
    assert!(stolen >= FLOOR, "the thief did not win");
    for loot in &loots {
        assert!(loot.is_sorted_by(|older, newer| older < newer));
    }
    let taken = outcome.won.into_iter().chain(loots.into_iter().flatten());
    assert_each_once(taken, outcome.pushed);
}

fn one_item<F: Flavour>() {
    race::<F>(ROUNDS, 1, 1, F::at(4, 0));
}

/// Every item uses the same slot, and the item numbers wrap around during the race.
fn one_slot<F: Flavour>() {
    race::<F>(FEWER_ROUNDS, 1, 1, F::at(1, LAST_NUMBER - FLOOR));
}

/// A thief steals one item and comes back for the other.
fn two_items<F: Flavour>() {
    race::<F>(FEWER_ROUNDS, 2, 1, F::at(2, 0));
}

/// The owner races with one thief for the last item while another thief holds the one before it.
fn two_thieves<F: Flavour>() {
    race::<F>(FEWER_ROUNDS, 2, 2, F::at(4, 0));
}
