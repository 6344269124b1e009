//! What the tests share: the flavours behind one interface, and tests that run once for each flavour.
//! Helpers that need no type of this crate are in `heist-testkit`.

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test binary uses its own part of this module"
)]

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use heist_deque::{Destination, Full, Steal, bounded, growable, locked};

pub(crate) use heist_testkit::ledger::{Ledger, Tracked};
pub(crate) use heist_testkit::random::Rng;

/// The last number before the tickets of a deque wrap around.
pub(crate) const LAST_NUMBER: usize = usize::MAX >> 2;

/// A flavour of deque, with its constructors.
pub(crate) trait Flavour: 'static {
    type Worker<T: Send>: Owner<T, Stealer = Self::Stealer<T>> + Destination<T> + Send + Debug;
    type Stealer<T: Send>: Thief<T, Self::Worker<T>> + Clone + Send + Sync + Debug;

    /// Creates a deque with room for `items`, which is large enough or grows.
    fn with_room<T: Send>(items: usize) -> (Self::Worker<T>, Self::Stealer<T>);

    /// Creates a deque of this (first) capacity, a power of two, whose first item has this number.
    fn at<T: Send>(capacity: usize, number: usize) -> (Self::Worker<T>, Self::Stealer<T>);

    /// Returns the largest number of items for a deque created with this capacity.
    fn most_items(capacity: usize) -> usize;
}

/// The operations of an owner.
pub(crate) trait Owner<T> {
    type Stealer;

    fn offer(&self, item: T) -> Result<(), Full<T>>;
    fn pop(&self) -> Option<T>;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
    fn capacity(&self) -> usize;
    fn stealer(&self) -> Self::Stealer;

    /// Pushes into a deque that has room.
    fn push(&self, item: T) {
        self.offer(item).expect("the test made room");
    }

    /// Pushes, and waits while the deque is full.
    fn push_patiently(&self, mut item: T) {
        /// Far longer than a thief needs to finish a read.
        const PATIENCE: Duration = Duration::from_secs(60);
        let mut full_since = None;
        loop {
            match self.offer(item) {
                Ok(()) => return,
                Err(Full(back)) => item = back,
            }
            let since = full_since.get_or_insert_with(Instant::now);
            assert!(since.elapsed() < PATIENCE, "the deque stayed full");
            thread::yield_now();
        }
    }
}

/// The operations of a thief.
pub(crate) trait Thief<T, W> {
    fn steal(&self) -> Steal<T>;
    fn steal_batch(&self, dest: &W) -> Steal<()>;
    fn steal_batch_and_pop(&self, dest: &W) -> Steal<T>;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
}

/// Repeats a steal until it returns something else than `Retry`.
pub(crate) fn persist<R>(attempt: impl Fn() -> Steal<R>) -> Option<R> {
    loop {
        match attempt() {
            Steal::Success(loot) => return Some(loot),
            Steal::Empty => return None,
            Steal::Retry => thread::yield_now(),
        }
    }
}

pub(crate) struct Bounded;
pub(crate) struct Growable;
pub(crate) struct Locked;

macro_rules! flavour {
    ($flavour:ident is $module:ident {
        with_room: $with_room:expr,
        at: $at:expr,
        most_items: $most_items:expr,
        offer: $offer:expr,
    }) => {
        impl Flavour for $flavour {
            type Worker<T: Send> = $module::Worker<T>;
            type Stealer<T: Send> = $module::Stealer<T>;

            fn with_room<T: Send>(items: usize) -> (Self::Worker<T>, Self::Stealer<T>) {
                $with_room(items)
            }

            fn at<T: Send>(capacity: usize, number: usize) -> (Self::Worker<T>, Self::Stealer<T>) {
                $at(capacity, number)
            }

            fn most_items(capacity: usize) -> usize {
                $most_items(capacity)
            }
        }

        impl<T: Send> Owner<T> for $module::Worker<T> {
            type Stealer = $module::Stealer<T>;

            fn offer(&self, item: T) -> Result<(), Full<T>> {
                $offer(self, item)
            }

            fn pop(&self) -> Option<T> {
                $module::Worker::pop(self)
            }

            fn len(&self) -> usize {
                $module::Worker::len(self)
            }

            fn is_empty(&self) -> bool {
                $module::Worker::is_empty(self)
            }

            fn capacity(&self) -> usize {
                $module::Worker::capacity(self)
            }

            fn stealer(&self) -> Self::Stealer {
                $module::Worker::stealer(self)
            }
        }

        impl<T: Send> Thief<T, $module::Worker<T>> for $module::Stealer<T> {
            fn steal(&self) -> Steal<T> {
                $module::Stealer::steal(self)
            }

            fn steal_batch(&self, dest: &$module::Worker<T>) -> Steal<()> {
                $module::Stealer::steal_batch(self, dest)
            }

            fn steal_batch_and_pop(&self, dest: &$module::Worker<T>) -> Steal<T> {
                $module::Stealer::steal_batch_and_pop(self, dest)
            }

            fn len(&self) -> usize {
                $module::Stealer::len(self)
            }

            fn is_empty(&self) -> bool {
                $module::Stealer::is_empty(self)
            }
        }
    };
}

flavour! {
    Bounded is bounded {
        with_room: |items: usize| bounded::new(items.next_power_of_two()).expect("a power of two"),
        at: |capacity, number| bounded::new_at(capacity, number).expect("a power of two"),
        most_items: |capacity| capacity,
        offer: bounded::Worker::push,
    }
}

flavour! {
    Growable is growable {
        with_room: |_items| growable::new(),
        at: growable::new_at,
        most_items: |_capacity| usize::MAX,
        offer: |worker: &growable::Worker<T>, item| {
            worker.push(item);
            Ok(())
        },
    }
}

flavour! {
    Locked is locked {
        with_room: |_items| locked::new(),
        at: |_capacity, _number| locked::new(),
        most_items: |_capacity| usize::MAX,
        offer: |worker: &locked::Worker<T>, item| {
            worker.push(item);
            Ok(())
        },
    }
}

/// Tells other threads that a thread has finished or panicked, such that they do not wait forever.
#[derive(Default)]
pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn is_up(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Raises the flag when the returned value is dropped.
    pub(crate) fn up_after(&self) -> impl Drop {
        struct Up<'a>(&'a Flag);
        impl Drop for Up<'_> {
            fn drop(&mut self) {
                self.0.0.store(true, Ordering::Release);
            }
        }
        Up(self)
    }
}

/// Makes `mod name { #[test] fn test() { test::<Type>() } ... }` for each type and each test.
macro_rules! tests_for {
    (@one $name:ident: $kind:path, { $($test:ident),* $(,)? }) => {
        mod $name {
            $(
                #[test]
                fn $test() {
                    super::$test::<$kind>();
                }
            )*
        }
    };
    ({ $($name:ident: $kind:path),* $(,)? } $tests:tt) => {
        $( $crate::common::tests_for!(@one $name: $kind, $tests); )*
    };
}
pub(crate) use tests_for;

/// Runs each test, a function with one type parameter, for every flavour.
macro_rules! for_every_flavour {
    ($($test:ident),* $(,)?) => {
        $crate::common::tests_for! {
            {
                bounded: crate::common::Bounded,
                growable: crate::common::Growable,
                locked: crate::common::Locked,
            }
            { $($test),* }
        }
    };
}
pub(crate) use for_every_flavour;

/// Panics unless `taken` has each number below `items` once.
pub(crate) fn assert_each_once(taken: impl IntoIterator<Item = usize>, items: usize) {
    let mut seen = vec![false; items];
    for item in taken {
        assert!(!seen[item], "{item} was taken twice");
        seen[item] = true;
    }
    let lost = seen.iter().position(|&seen| !seen);
    assert_eq!(lost, None, "this item was lost");
}
