//! Models of the injector. A segment has three cells here, so that borders are near.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heist_deque::{Injector, Steal, growable};
use heist_testkit::explore::{Model, models};
use loom::thread;

/// Creates an injector with two of the three cells of the first segment used up.
fn near_the_border() -> loom::sync::Arc<Injector<usize>> {
    let injector = Injector::new_at(1);
    for n in 0..2 {
        injector.push(n);
        assert_eq!(injector.steal(), Steal::Success(n));
    }
    loom::sync::Arc::new(injector)
}

fn drain(injector: &Injector<usize>) -> Vec<usize> {
    let rest = std::iter::from_fn(|| injector.steal().success()).collect();
    assert_eq!(injector.steal(), Steal::Empty, "no other operation is in progress");
    rest
}

fn complete(pushed: &[usize], mut out: Vec<usize>) {
    out.sort_unstable();
    assert_eq!(out, pushed, "lost or doubled");
}

/// A pusher crosses the border while a thief follows it.
fn border() {
    let injector = near_the_border();
    let other = injector.clone();
    let thief =
        thread::spawn(move || Vec::from_iter((0..2).filter_map(|_| other.steal().success())));
    injector.push(10);
    injector.push(11);
    let mut out = thief.join().unwrap();
    out.extend(drain(&injector));
    assert_eq!(out, [10, 11], "first in, first out");
}

/// One thief crosses the border behind the pusher, another one follows it.
fn border_two_thieves() {
    let injector = near_the_border();
    let thieves = [injector.clone(), injector.clone()]
        .map(|injector| thread::spawn(move || injector.steal().success()));
    injector.push(10);
    injector.push(11);
    let mut out: Vec<_> = thieves.into_iter().filter_map(|thief| thief.join().unwrap()).collect();
    out.extend(drain(&injector));
    complete(&[10, 11], out);
}

/// Two pushers meet at the border.
fn two_pushers() {
    let injector = near_the_border();
    let other = injector.clone();
    let pusher = thread::spawn(move || other.push(10));
    injector.push(11);
    pusher.join().unwrap();
    complete(&[10, 11], drain(&injector));
}

/// Two thieves take the last cells of a segment: one of them frees it.
fn two_thieves() {
    let injector = near_the_border();
    injector.push(10);
    injector.push(11);
    let other = injector.clone();
    let thief = thread::spawn(move || other.steal().success());
    let mut out = Vec::from_iter(injector.steal().success());
    out.extend(thief.join().unwrap());
    out.extend(drain(&injector));
    complete(&[10, 11], out);
}

/// Two thieves take two cells of one segment, whose third was taken before, and free it.
fn leave_together() {
    let injector = loom::sync::Arc::new(Injector::new_at(1));
    (0..3).for_each(|n| injector.push(n));
    assert_eq!(injector.steal(), Steal::Success(0));
    let other = injector.clone();
    let thief = thread::spawn(move || other.steal().success());
    let mut out = Vec::from_iter(injector.steal().success());
    out.extend(thief.join().unwrap());
    out.extend(drain(&injector));
    complete(&[1, 2], out);
}

/// A batch against a single steal, with a pusher's item on its way.
fn batch() {
    let injector = loom::sync::Arc::new(Injector::new_at(1));
    (0..2).for_each(|n| injector.push(n));
    let other = injector.clone();
    let thief = thread::spawn(move || {
        let (mine, _) = growable::new_at(4, 0);
        let mut loot = Vec::from_iter(other.steal_batch_and_pop(&mine).success());
        loot.extend(std::iter::from_fn(|| mine.pop()));
        assert!(loot.is_sorted(), "a batch comes out oldest first: {loot:?}");
        loot
    });
    injector.push(2);
    let mut out = Vec::from_iter(injector.steal().success());
    out.extend(thief.join().unwrap());
    out.extend(drain(&injector));
    complete(&[0, 1, 2], out);
}

/// A thief puts a segment into the stash while a pusher needs one, and follows the pusher into it.
fn reuse() {
    let injector = loom::sync::Arc::new(Injector::new_at(2));
    (0..5).for_each(|n| injector.push(n));
    (0..2).for_each(|n| assert_eq!(injector.steal(), Steal::Success(n)));
    let other = injector.clone();
    let thief = thread::spawn(move || Vec::from_iter(other.steal().success()));
    injector.push(5);
    injector.push(6);
    let mut out = thief.join().unwrap();
    out.extend(drain(&injector));
    assert_eq!(out, [2, 3, 4, 5, 6], "first in, first out");
}

/// A pusher crosses the border of a reused segment, and a thief follows it. Nothing of the segment's
/// first use is seen, nor of its time in the stash, and it is freed as after its first use.
fn second_life() {
    let injector = loom::sync::Arc::new(Injector::new_at(2));
    // Puts two segments into the stash; then uses one of them up to its last cell.
    for part in [0..8, 8..11] {
        part.clone().for_each(|n| injector.push(n));
        part.for_each(|n| assert_eq!(injector.steal(), Steal::Success(n)));
    }
    let other = injector.clone();
    let thief =
        thread::spawn(move || Vec::from_iter((0..2).filter_map(|_| other.steal().success())));
    injector.push(11);
    injector.push(12);
    let mut out = thief.join().unwrap();
    out.extend(drain(&injector));
    assert_eq!(out, [11, 12], "first in, first out");
}

/// Two thieves put two segments into the stash, which has room for one.
fn stash_is_full() {
    let injector = loom::sync::Arc::new(Injector::new_at(2));
    (0..9).for_each(|n| injector.push(n));
    (0..5).for_each(|n| assert_eq!(injector.steal(), Steal::Success(n)));
    let other = injector.clone();
    let thief =
        thread::spawn(move || Vec::from_iter((0..3).filter_map(|_| other.steal().success())));
    let mut out = Vec::from_iter(injector.steal().success());
    out.extend(thief.join().unwrap());
    out.extend(drain(&injector));
    complete(&[5, 6, 7, 8], out);
}

/// A batch is pushed over the border while a thief follows it.
fn push_batch() {
    let injector = loom::sync::Arc::new(Injector::new_at(1));
    injector.push(0);
    assert_eq!(injector.steal(), Steal::Success(0));
    let other = injector.clone();
    let thief =
        thread::spawn(move || Vec::from_iter((0..2).filter_map(|_| other.steal().success())));
    injector.push_batch([10, 11, 12]);
    let mut out = thief.join().unwrap();
    out.extend(drain(&injector));
    assert_eq!(out, [10, 11, 12], "first in, first out");
}

/// A batch is pushed over the border, where another pusher may come between its claims.
fn push_batch_two_pushers() {
    let injector = loom::sync::Arc::new(Injector::new_at(1));
    injector.push(0);
    assert_eq!(injector.steal(), Steal::Success(0));
    let other = injector.clone();
    let pusher = thread::spawn(move || other.push(20));
    injector.push_batch([10, 11, 12]);
    pusher.join().unwrap();
    let mut out = drain(&injector);
    assert_eq!(out.len(), 4, "lost or doubled");
    out.retain(|&item| item != 20);
    assert_eq!(out, [10, 11, 12], "the items of a batch are in order");
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Items that are left when the injector is dropped are dropped once.
fn teardown() {
    let drops = Arc::new(AtomicUsize::new(0));
    let injector = loom::sync::Arc::new(Injector::new_at(1));
    let other = injector.clone();
    let counted = Counted(Arc::clone(&drops));
    let pusher = thread::spawn(move || other.push(counted));
    (0..3).for_each(|_| injector.push(Counted(Arc::clone(&drops))));
    drop(injector.steal());
    drop(injector);
    pusher.join().unwrap();
    assert_eq!(drops.load(Relaxed), 4, "every item is dropped once");
}

models! {
    injector_border: border, None, 2_400;
    injector_two_pushers: two_pushers, None, 1_150;
    injector_two_thieves: two_thieves, None, 580;
    injector_leave_together: leave_together, None, 16;
    injector_batch: batch, None, 1_300;
    injector_reuse: reuse, None, 14;
    injector_second_life: second_life, None, 2_400;
    injector_stash_is_full: stash_is_full, None, 310;
    injector_push_batch: push_batch, None, 400;
    injector_push_batch_two_pushers: push_batch_two_pushers, None, 1_050;
    injector_teardown: teardown, None, 165_000;
    injector_border_two_thieves: border_two_thieves, Some(3), 180_000;
}
