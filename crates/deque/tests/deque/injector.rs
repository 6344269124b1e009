//! The contract of the injector: first in, first out, for any number of pushers and thieves, and in batches
//! into a worker of any flavour.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist_deque::{BATCH_LIMIT, Injector, Steal};

use crate::common::{
    Flag, Flavour, Ledger, Owner, Rng, Thief, assert_each_once, for_every_flavour, persist,
};

/// The number of items of a segment, according to the documentation.
pub(crate) const SEGMENT: usize = 63;

for_every_flavour! {
    stress,
    no_starvation,
    destructors,
    large_items,
}

pub(crate) fn filled(items: usize) -> Injector<usize> {
    let injector = Injector::new();
    (1..=items).for_each(|n| injector.push(n));
    injector
}

#[test]
fn smoke() {
    let injector = Injector::new();
    assert_eq!(injector.steal(), Steal::Empty);
    injector.push(1);
    injector.push(2);
    assert_eq!(injector.steal(), Steal::Success(1));
    injector.push(3);
    assert_eq!(injector.steal(), Steal::Success(2));
    assert_eq!(injector.steal(), Steal::Success(3));
    assert_eq!(injector.steal(), Steal::Empty);
}

/// With every number of items in the queue, at every position in a segment.
#[test]
fn fifo() {
    for items in 0..=2 * SEGMENT + 2 {
        let injector = filled(items);
        for n in 1..=2 * SEGMENT + 2 {
            injector.push(items + n);
            assert_eq!(injector.steal(), Steal::Success(n));
            assert_eq!(injector.len(), items);
        }
    }
}

#[test]
fn many_segments() {
    const ITEMS: usize = 1000 * SEGMENT + 1;
    let injector = filled(ITEMS);
    assert_eq!(injector.len(), ITEMS);
    (1..=ITEMS).for_each(|n| assert_eq!(injector.steal(), Steal::Success(n)));
    assert_eq!(injector.steal(), Steal::Empty);
}

/// Batches of every length, from every position in a segment.
#[test]
fn push_batch_fifo() {
    for before in 0..=SEGMENT {
        for items in 0..=2 * SEGMENT + 2 {
            let injector = filled(before);
            injector.push_batch(before + 1..=before + items);
            injector.push(before + items + 1);
            assert_eq!(injector.len(), before + items + 1);
            (1..=before + items + 1).for_each(|n| assert_eq!(injector.steal(), Steal::Success(n)));
            assert_eq!(injector.steal(), Steal::Empty);
        }
    }
}

/// The iterator pushes to the injector and steals from it: no cell is claimed while the iterator runs.
#[test]
fn push_batch_of_a_user_of_the_injector() {
    const ITEMS: usize = 5 * SEGMENT;
    let injector = Injector::new();
    let mut stolen = Vec::new();
    injector.push_batch((0..ITEMS).inspect(|n| {
        injector.push(ITEMS + n);
        stolen.extend(injector.steal().success());
    }));
    stolen.extend(std::iter::from_fn(|| injector.steal().success()));
    let (batch, others): (Vec<_>, Vec<_>) = stolen.into_iter().partition(|&n| n < ITEMS);
    assert!(batch.into_iter().eq(0..ITEMS));
    assert!(others.into_iter().eq(ITEMS..2 * ITEMS));
}

/// `next` is not called again after an iterator has ended, because it might start again.
#[test]
fn push_batch_ends_once() {
    for items in 0..=2 * SEGMENT {
        let injector = Injector::new();
        let mut rounds = (0..items).map(Some).chain([None]).cycle();
        injector.push_batch(std::iter::from_fn(|| rounds.next().flatten()));
        assert_eq!(injector.len(), items);
    }
}

#[test]
fn is_empty() {
    let injector = Injector::new();
    for _ in 0..2 * SEGMENT {
        assert!(injector.is_empty());
        injector.push(1);
        assert!(!injector.is_empty());
        injector.push(2);
        assert!(injector.steal().is_success());
        assert!(!injector.is_empty());
        assert!(injector.steal().is_success());
        assert!(injector.is_empty());
    }
}

#[test]
fn len() {
    let injector = Injector::new();
    for n in 0..5 * SEGMENT {
        assert_eq!(injector.len(), n);
        injector.push(n);
    }
    for n in (0..5 * SEGMENT).rev() {
        assert!(injector.steal().is_success());
        assert_eq!(injector.len(), n);
    }
}

#[test]
fn debug() {
    struct Opaque;
    let injector = Injector::default();
    injector.push(Opaque);
    assert!(format!("{injector:?}").starts_with("Injector {"));
}

#[test]
fn spsc() {
    const ITEMS: usize = 200_000;
    let injector = Injector::new();
    let stolen = thread::scope(|scope| {
        let thief = scope.spawn(|| {
            let mut stolen = Vec::with_capacity(ITEMS);
            while stolen.len() < ITEMS {
                match persist(|| injector.steal()) {
                    Some(item) => stolen.push(item),
                    None => thread::yield_now(),
                }
            }
            stolen
        });
        (0..ITEMS).for_each(|n| injector.push(n));
        thief.join().expect("the thief")
    });
    assert!(stolen.into_iter().eq(0..ITEMS));
    assert_eq!(injector.steal(), Steal::Empty);
}

/// Steals single items until all thieves together have taken the `remaining` items.
fn steal_until_none<T>(injector: &Injector<T>, remaining: &AtomicUsize) -> Vec<T> {
    let mut stolen = Vec::new();
    while remaining.load(Ordering::Relaxed) > 0 {
        match injector.steal() {
            Steal::Success(item) => {
                stolen.push(item);
                remaining.fetch_sub(1, Ordering::Relaxed);
            }
            Steal::Empty | Steal::Retry => thread::yield_now(),
        }
    }
    stolen
}

#[test]
fn mpmc() {
    fifo_of_each_pusher(|injector, items| items.for_each(|item| injector.push(item)));
}

/// The pushers push batches of different lengths, some longer than a segment.
#[test]
fn mpmc_push_batch() {
    fifo_of_each_pusher(|injector, items| {
        for n in 0.. {
            let mut batch = (&mut *items).take(1 + n % (SEGMENT + 7)).peekable();
            if batch.peek().is_none() {
                break;
            }
            injector.push_batch(batch);
        }
    });
}

/// A pusher, and the number of an item among the pusher's.
type Numbered = (usize, usize);

/// Each thief sees the items of each pusher in the order in which they were pushed.
fn fifo_of_each_pusher(push: fn(&Injector<Numbered>, &mut dyn Iterator<Item = Numbered>)) {
    const PUSHERS: usize = 4;
    const THIEVES: usize = 4;
    const ITEMS: usize = 50_000;
    let injector = Injector::new();
    let remaining = AtomicUsize::new(PUSHERS * ITEMS);
    let stolen: Vec<Vec<Numbered>> = thread::scope(|scope| {
        let rob = || steal_until_none(&injector, &remaining);
        let thieves: Vec<_> = (0..THIEVES).map(|_| scope.spawn(rob)).collect();
        for pusher in 0..PUSHERS {
            let injector = &injector;
            scope.spawn(move || push(injector, &mut (0..ITEMS).map(|n| (pusher, n))));
        }
        let stolen = thieves.into_iter().map(|thief| thief.join());
        stolen.map(|loot| loot.expect("a thief")).collect()
    });
    for pusher in 0..PUSHERS {
        let of_pusher = |loot: &[Numbered]| -> Vec<usize> {
            let theirs = loot.iter().filter(|item| item.0 == pusher);
            theirs.map(|item| item.1).collect()
        };
        let loots: Vec<_> = stolen.iter().map(|loot| of_pusher(loot)).collect();
        for loot in &loots {
            assert!(loot.is_sorted_by(|older, newer| older < newer));
        }
        assert_each_once(loots.into_iter().flatten(), ITEMS);
    }
}

#[test]
fn stampede() {
    const THIEVES: usize = 8;
    const ITEMS: usize = 50_000;
    let injector = Injector::new();
    // Boxed, such that an item that is taken twice is freed twice.
    (0..ITEMS).for_each(|n| injector.push(Box::new(n)));
    let stolen: Vec<Vec<usize>> = thread::scope(|scope| {
        let rob = || {
            let loot = std::iter::from_fn(|| persist(|| injector.steal()));
            loot.map(|item| *item).collect()
        };
        let thieves: Vec<_> = (0..THIEVES).map(|_| scope.spawn(rob)).collect();
        let stolen = thieves.into_iter().map(|thief| thief.join());
        stolen.map(|loot| loot.expect("a thief")).collect()
    });
    for loot in &stolen {
        assert!(loot.is_sorted_by(|older, newer| older < newer));
    }
    assert_each_once(stolen.into_iter().flatten(), ITEMS);
    assert!(injector.is_empty());
}

/// Steals once, in a random way, and passes all items that the thief has now to `take`.
fn rob<T: Send>(
    injector: &Injector<T>,
    own: &(impl Owner<T> + heist_deque::Destination<T>),
    rng: &mut Rng,
    take: &mut impl FnMut(T),
) {
    match rng.below(3) {
        0 => drop(injector.steal().success().map(&mut *take)),
        1 => drop(injector.steal_batch(own)),
        _ => drop(injector.steal_batch_and_pop(own).success().map(&mut *take)),
    }
    while let Some(item) = own.pop() {
        take(item);
    }
}

fn stress<F: Flavour>() {
    const PUSHERS: usize = 2;
    const THIEVES: usize = 3;
    const ITEMS: usize = 1_000_000;
    let injector = Injector::new();
    let remaining = AtomicUsize::new(ITEMS);
    let stolen: Vec<Vec<usize>> = thread::scope(|scope| {
        let (injector, remaining) = (&injector, &remaining);
        let rob = |seed: usize| {
            let (own, _) = F::with_room(64);
            let mut rng = Rng::new(seed as u64);
            let mut stolen = Vec::new();
            while remaining.load(Ordering::Relaxed) > 0 {
                let before = stolen.len();
                rob(injector, &own, &mut rng, &mut |item| stolen.push(item));
                if before == stolen.len() {
                    thread::yield_now();
                } else {
                    remaining.fetch_sub(stolen.len() - before, Ordering::Relaxed);
                }
            }
            stolen
        };
        let thieves: Vec<_> = (0..THIEVES).map(|seed| scope.spawn(move || rob(seed))).collect();
        for pusher in 0..PUSHERS {
            let items = (pusher..ITEMS).step_by(PUSHERS);
            scope.spawn(move || items.for_each(|n| injector.push(n)));
        }
        let stolen = thieves.into_iter().map(|thief| thief.join());
        stolen.map(|loot| loot.expect("a thief")).collect()
    });
    assert_each_once(stolen.into_iter().flatten(), ITEMS);
    assert!(injector.is_empty());
}

/// No thread starves: items are pushed until every thief has stolen one.
fn no_starvation<F: Flavour>() {
    const THIEVES: usize = 6;
    /// Far more items than needed: a thief without an item after this many has starved.
    const MOST: usize = 20_000_000;
    let injector = Injector::new();
    let done = Flag::default();
    let hits: [AtomicUsize; THIEVES] = Default::default();
    thread::scope(|scope| {
        for (seed, hits) in hits.iter().enumerate() {
            let (done, injector) = (&done, &injector);
            scope.spawn(move || {
                let (own, _) = F::with_room(64);
                let mut rng = Rng::new(seed as u64);
                let mut count = |_| {
                    hits.fetch_add(1, Ordering::Relaxed);
                };
                while !done.is_up() {
                    rob(injector, &own, &mut rng, &mut count);
                    thread::yield_now();
                }
            });
        }
        let _up = done.up_after();
        let everyone = || hits.iter().all(|hits| hits.load(Ordering::Relaxed) > 0);
        let mut pushed = 0;
        while pushed < MOST && !everyone() {
            (0..500).for_each(|n| injector.push(n));
            pushed += 500;
            thread::yield_now();
        }
    });
    let hits = hits.map(AtomicUsize::into_inner);
    assert!(!hits.contains(&0), "a thief starved: {hits:?}");
}

/// Taken items are dropped by the thread that took them, the rest with the injector.
fn destructors<F: Flavour>() {
    const THIEVES: usize = 4;
    const ITEMS: usize = 50_000;
    const STEPS: usize = 1000;
    let injector = Injector::new();
    let ledger = Ledger::new(ITEMS);
    (0..ITEMS).for_each(|n| injector.push(ledger.item(n)));
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for seed in 0..THIEVES {
            let (injector, taken) = (&injector, &taken);
            scope.spawn(move || {
                let (own, _) = F::with_room(64);
                let mut rng = Rng::new(seed as u64);
                let mut mine = 0;
                while mine < STEPS {
                    rob(injector, &own, &mut rng, &mut |_| mine += 1);
                }
                taken.fetch_add(mine, Ordering::Relaxed);
            });
        }
    });
    let taken = taken.into_inner();
    assert_eq!(ledger.dropped(), taken);
    assert_eq!(injector.len(), ITEMS - taken);
    drop(injector);
    ledger.assert_each_once();
}

/// A type so large that a segment, or the ring of a growable deque, is twice as large as the stack below.
const LARGE: usize = 16 << 10;

struct Large([u8; LARGE]);

const SMALL_STACK: usize = 512 << 10;

/// Takes a large item in a stack frame of its own, and returns whether it is filled with `n`.
#[inline(never)]
fn is_whole(take: impl FnOnce() -> Option<Large>, n: u8) -> bool {
    take().is_some_and(|item| item.0.iter().all(|&byte| byte == n))
}

/// Only single items are ever on the stack.
fn large_items<F: Flavour>() {
    let job = || {
        let injector = Injector::new();
        let (mine, stealer) = F::with_room(64);
        (0..50).for_each(|n| injector.push(Large([n; LARGE])));
        injector.push_batch((50..=100).map(|n| Large([n; LARGE])));
        assert!(is_whole(|| injector.steal().success(), 0));
        let batch_and_pop = || injector.steal_batch_and_pop(&mine).success();
        assert!(is_whole(batch_and_pop, 1));
        assert!(is_whole(|| mine.pop(), 2));
        assert!(is_whole(|| stealer.steal().success(), BATCH_LIMIT as u8));
        assert_eq!(mine.len(), BATCH_LIMIT - 3);
        assert_eq!(injector.len(), 100 - BATCH_LIMIT);
    };
    let small = thread::Builder::new().stack_size(SMALL_STACK);
    let small = small.spawn(job).expect("a thread");
    small.join().expect("no overflow");
}

/// Like `stress`, across the wrap-around, many times.
#[test]
fn wrap_around_with_threads() {
    const ITEMS: usize = 6 * SEGMENT;
    for _ in 0..300 {
        let injector = Injector::new_at(2);
        let remaining = AtomicUsize::new(ITEMS);
        let rob = || steal_until_none(&injector, &remaining);
        let stolen = thread::scope(|scope| {
            let thieves = [scope.spawn(rob), scope.spawn(rob)];
            (0..ITEMS).for_each(|n| injector.push(n));
            thieves.map(|thief| thief.join().expect("a thief"))
        });
        for loot in &stolen {
            assert!(loot.is_sorted_by(|older, newer| older < newer));
        }
        assert_each_once(stolen.into_iter().flatten(), ITEMS);
    }
}
