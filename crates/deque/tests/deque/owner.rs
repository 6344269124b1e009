//! The contract of the owner: it pops the newest item first, whatever the thieves do, and no item is lost
//! or taken twice.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist_deque::{Full, Steal};

use crate::common::{
    Flag, Flavour, Ledger, Owner, Rng, Thief, assert_each_once, for_every_flavour, persist,
};

for_every_flavour! {
    smoke,
    order,
    is_empty,
    len,
    debug,
    spsc,
    stampede,
    stress,
    no_starvation,
    destructors,
}

fn smoke<F: Flavour>() {
    let (worker, stealer) = F::with_room(4);
    assert_eq!(worker.pop(), None);
    assert_eq!(stealer.steal(), Steal::Empty);

    worker.push(1);
    assert_eq!(worker.pop(), Some(1));
    assert_eq!(worker.pop(), None);
    assert_eq!(stealer.steal(), Steal::Empty);

    worker.push(2);
    assert_eq!(stealer.steal(), Steal::Success(2));
    assert_eq!(stealer.steal(), Steal::Empty);
    assert_eq!(worker.pop(), None);

    (3..=6).for_each(|n| worker.push(n));
    assert_eq!(stealer.steal(), Steal::Success(3));
    assert_eq!(worker.pop(), Some(6));
    assert_eq!(worker.stealer().steal(), Steal::Success(4));
    assert_eq!(worker.pop(), Some(5));
    assert_eq!(worker.pop(), None);
}

/// Through several sizes of a growable deque and several laps of a bounded one.
fn order<F: Flavour>() {
    let (worker, stealer) = F::with_room(1000);
    for _ in 0..5 {
        (0..1000).for_each(|n| worker.push(n));
        for n in (500..1000).rev() {
            assert_eq!(worker.pop(), Some(n));
        }
        (500..700).for_each(|n| worker.push(n));
        (0..200).for_each(|n| assert_eq!(stealer.steal(), Steal::Success(n)));
        for n in (200..700).rev() {
            assert_eq!(worker.pop(), Some(n));
        }
        assert_eq!(worker.pop(), None);
    }
}

fn is_empty<F: Flavour>() {
    let (worker, stealer) = F::with_room(4);
    let both = || (worker.is_empty(), stealer.is_empty());
    assert_eq!(both(), (true, true));
    worker.push(1);
    assert_eq!(both(), (false, false));
    worker.push(2);
    worker.pop();
    assert_eq!(both(), (false, false));
    worker.pop();
    assert_eq!(both(), (true, true));
    worker.push(3);
    assert_eq!(both(), (false, false));
    assert!(stealer.steal().is_success());
    assert_eq!(both(), (true, true));
    worker.pop();
    assert_eq!(both(), (true, true));
}

fn len<F: Flavour>() {
    let (worker, stealer) = F::with_room(256);
    let both = || (worker.len(), stealer.len());
    for lap in 0..4 {
        assert_eq!(both(), (0, 0));
        for n in 1..=200 {
            worker.push(n);
            assert_eq!(both(), (n, n), "after push, lap {lap}");
        }
        for n in (100..200).rev() {
            assert!(stealer.steal().is_success());
            assert_eq!(both(), (n, n), "after steal, lap {lap}");
        }
        for n in (0..100).rev() {
            assert!(worker.pop().is_some());
            assert_eq!(both(), (n, n), "after pop, lap {lap}");
        }
    }
}

/// `Debug` is implemented for every `T`, even without `Debug`.
fn debug<F: Flavour>() {
    struct Opaque;
    let (worker, stealer) = F::with_room(4);
    worker.push(Opaque);
    assert!(format!("{worker:?}").starts_with("Worker {"));
    assert!(format!("{stealer:?}").starts_with("Stealer {"));
    assert_eq!(worker.len(), 1);
}

/// One thief and an owner that only pushes: the thief sees the order of the pushes.
fn spsc<F: Flavour>() {
    const ITEMS: usize = 100_000;
    let (worker, stealer) = F::with_room(512);
    let pushed = Flag::default();
    let stolen = thread::scope(|scope| {
        let thief = scope.spawn(|| {
            let mut stolen = Vec::with_capacity(ITEMS);
            loop {
                let all = pushed.is_up();
                match persist(|| stealer.steal()) {
                    Some(item) => stolen.push(item),
                    None if all => return stolen,
                    None => thread::yield_now(),
                }
            }
        });
        let up = pushed.up_after();
        (0..ITEMS).for_each(|n| worker.push_patiently(n));
        drop(up);
        thief.join().expect("the thief")
    });
    assert!(stolen.into_iter().eq(0..ITEMS));
    assert_eq!(stealer.steal(), Steal::Empty);
    assert_eq!(worker.pop(), None);
}

/// Many thieves empty a full deque: the item numbers increase for each thief and decrease for the owner.
fn stampede<F: Flavour>() {
    const THIEVES: usize = 8;
    const ITEMS: usize = 50_000;
    let (worker, stealer) = F::with_room(ITEMS);
    // Boxed, such that an item that is taken twice is freed twice.
    (0..ITEMS).for_each(|n| worker.push(Box::new(n)));
    let (popped, stolen) = thread::scope(|scope| {
        let rob = || {
            let loot = std::iter::from_fn(|| persist(|| stealer.steal()));
            loot.map(|item| *item).collect::<Vec<_>>()
        };
        let thieves: Vec<_> = (0..THIEVES).map(|_| scope.spawn(rob)).collect();
        let popped: Vec<_> = std::iter::from_fn(|| worker.pop()).map(|item| *item).collect();
        let stolen = thieves.into_iter().map(|thief| thief.join());
        let stolen: Vec<_> = stolen.map(|loot| loot.expect("a thief")).collect();
        (popped, stolen)
    });
    assert!(popped.is_sorted_by(|newer, older| newer > older));
    for loot in &stolen {
        assert!(loot.is_sorted_by(|older, newer| older < newer));
    }
    assert_each_once(stolen.into_iter().flatten().chain(popped), ITEMS);
    assert!(worker.is_empty() && stealer.is_empty());
}

/// The ways to steal.
#[derive(Clone, Copy)]
enum Way {
    One,
    Batch,
    BatchAndPop,
}

const WAYS: [Way; 3] = [Way::One, Way::Batch, Way::BatchAndPop];

/// Steals once, and passes all items that the thief has now to `take`.
fn rob<F: Flavour, T: Send>(
    way: Way,
    stealer: &F::Stealer<T>,
    own: &F::Worker<T>,
    take: &mut impl FnMut(T),
) {
    match way {
        Way::One => drop(persist(|| stealer.steal()).map(&mut *take)),
        Way::Batch => drop(stealer.steal_batch(own)),
        Way::BatchAndPop => drop(stealer.steal_batch_and_pop(own).success().map(&mut *take)),
    }
    while let Some(item) = own.pop() {
        take(item);
    }
}

/// The owner pushes and pops at random while thieves steal in every way.
fn stress<F: Flavour>() {
    const ITEMS: usize = 2_000_000;
    /// The least number of steals for a meaningful test.
    const FLOOR: usize = 1000;
    let (worker, stealer) = F::with_room(1024);
    let done = Flag::default();
    let (popped, emptied, stolen) = thread::scope(|scope| {
        let thieves = WAYS.map(|way| {
            let (done, stealer) = (&done, stealer.clone());
            scope.spawn(move || {
                let (own, _) = F::with_room(64);
                let mut loot = Vec::new();
                while !done.is_up() {
                    rob::<F, _>(way, &stealer, &own, &mut |item| loot.push(item));
                }
                loot
            })
        });
        let up = done.up_after();
        let popped = push_and_pop(&worker, ITEMS);
        let emptied = stealer.is_empty();
        drop(up);
        let stolen = thieves.map(|thief| thief.join().expect("a thief"));
        (popped, emptied, stolen.concat())
    });
    assert!(emptied, "an owner's None is final");
    assert!(stolen.len() >= FLOOR, "only {} stolen", stolen.len());
    assert_each_once(popped.into_iter().chain(stolen), ITEMS);
}

/// The owner's part of `stress`. Returns the items that it has kept.
fn push_and_pop(worker: &impl Owner<usize>, items: usize) -> Vec<usize> {
    let mut kept = Vec::new();
    let mut rng = Rng::new(1);
    for item in 0..items {
        if let Err(Full(back)) = worker.offer(item) {
            kept.push(back);
        }
        if rng.below(3) == 0 {
            kept.extend(worker.pop());
        }
        if rng.below(5000) == 0 {
            kept.extend(std::iter::from_fn(|| worker.pop()));
        }
    }
    kept.extend(std::iter::from_fn(|| worker.pop()));
    kept
}

/// No thread starves: the owner pushes until every thief has stolen an item.
fn no_starvation<F: Flavour>() {
    const THIEVES: usize = 6;
    /// Far more items than needed: a thief without an item after this many has starved.
    const MOST: usize = 20_000_000;
    let (worker, stealer) = F::with_room(1024);
    let done = Flag::default();
    let hits: [AtomicUsize; THIEVES] = Default::default();
    let popped = thread::scope(|scope| {
        for (thief, hits) in hits.iter().enumerate() {
            let (done, stealer) = (&done, stealer.clone());
            scope.spawn(move || {
                let (own, _) = F::with_room(64);
                let mut count = |_| {
                    hits.fetch_add(1, Ordering::Relaxed);
                };
                while !done.is_up() {
                    rob::<F, _>(WAYS[thief % 3], &stealer, &own, &mut count);
                    thread::yield_now();
                }
            });
        }
        let _up = done.up_after();
        let everyone = || hits.iter().all(|hits| hits.load(Ordering::Relaxed) > 0);
        let mut popped = 0;
        let mut pushed = 0;
        while pushed < MOST && !(popped > 0 && everyone()) {
            (0..500).for_each(|n| {
                let _full_is_fine = worker.offer(n);
            });
            pushed += 500;
            popped += usize::from(worker.pop().is_some());
            thread::yield_now();
        }
        popped
    });
    let hits = hits.map(AtomicUsize::into_inner);
    assert!(popped > 0, "the owner starved");
    assert!(!hits.contains(&0), "a thief starved: {hits:?}");
}

/// Taken items are dropped by the thread that took them, the rest by the last handle.
fn destructors<F: Flavour>() {
    const ITEMS: usize = 50_000;
    const STEPS: usize = 1000;
    let (worker, stealer) = F::with_room(ITEMS);
    let ledger = Ledger::new(ITEMS);
    (0..ITEMS).for_each(|n| worker.push(ledger.item(n)));
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for way in WAYS {
            let (taken, stealer) = (&taken, stealer.clone());
            scope.spawn(move || {
                let (own, _) = F::with_room(64);
                let mut mine = 0;
                while mine < STEPS {
                    rob::<F, _>(way, &stealer, &own, &mut |_| mine += 1);
                }
                taken.fetch_add(mine, Ordering::Relaxed);
            });
        }
        let popped = (0..STEPS).filter_map(|_| worker.pop()).count();
        taken.fetch_add(popped, Ordering::Relaxed);
    });
    let taken = taken.into_inner();
    assert_eq!(ledger.dropped(), taken);
    assert_eq!(worker.len(), ITEMS - taken);
    drop(worker);
    assert_eq!(ledger.dropped(), taken);
    drop(stealer);
    ledger.assert_each_once();
}
