//! The contract of destructors: every item is dropped once, in whatever order the handles are dropped, and
//! a destructor that panics affects no other item.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use heist_deque::Injector;

use crate::common::{Flavour, Ledger, Owner, Thief, Tracked, for_every_flavour, tests_for};

/// A queue that is dropped with items in it: a deque of any flavour, or an injector.
trait Keeper {
    type Kept<T: Send>: Send;

    /// Creates a queue with `items`, which has had other items before.
    fn keep<T: Send>(items: impl ExactSizeIterator<Item = T>) -> Self::Kept<T>;
}

impl<F: Flavour> Keeper for F {
    type Kept<T: Send> = (F::Worker<T>, F::Stealer<T>);

    fn keep<T: Send>(items: impl ExactSizeIterator<Item = T>) -> Self::Kept<T> {
        let grows = F::most_items(2) > 2;
        let capacity = if grows { 2 } else { items.len() };
        // An odd start, such that the items wrap around the end of the ring.
        let (worker, stealer) = F::at(capacity.next_power_of_two(), 3);
        items.for_each(|item| worker.push(item));
        (worker, stealer)
    }
}

struct Injected;

impl Keeper for Injected {
    type Kept<T: Send> = Injector<T>;

    fn keep<T: Send>(items: impl ExactSizeIterator<Item = T>) -> Self::Kept<T> {
        let injector = Injector::new();
        items.for_each(|item| injector.push(item));
        injector
    }
}

for_every_flavour! {
    worker_first,
    stealer_first,
    taken_and_left,
    thieves_inside,
    batches,
}

tests_for! {
    {
        left_in_bounded: crate::common::Bounded,
        left_in_growable: crate::common::Growable,
        left_in_locked: crate::common::Locked,
        left_in_injector: super::Injected,
    }
    {
        all,
        large,
        zero_sized,
        on_another_thread,
        one_panic,
        several_panics,
        panic_on_another_thread,
        while_panicking,
        panics_while_panicking,
    }
}

/// Numbers around the sizes of rings and segments.
const SIZES: [usize; 10] = [0, 1, 2, 63, 64, 65, 126, 127, 200, 512];

fn all<K: Keeper>() {
    for size in SIZES {
        let ledger = Ledger::new(size);
        let kept = K::keep((0..size).map(|n| ledger.item(n)));
        assert_eq!(ledger.dropped(), 0);
        drop(kept);
        ledger.assert_each_once();
    }
}

fn on_another_thread<K: Keeper>() {
    let ledger = Ledger::new(100);
    let kept = K::keep((0..100).map(|n| ledger.item(n)));
    let dropper = thread::scope(|scope| scope.spawn(|| drop(kept)).join());
    dropper.expect("no panic");
    ledger.assert_each_once();
}

/// Items larger than a page, filled with their numbers.
fn large<K: Keeper>() {
    struct Large {
        number: usize,
        ballast: [usize; 1000],
        _tracked: Tracked,
    }
    impl Drop for Large {
        fn drop(&mut self) {
            assert!(self.ballast.iter().all(|&word| word == self.number));
        }
    }
    let ledger = Ledger::new(100);
    drop(K::keep((0..100).map(|number| Large {
        number,
        ballast: [number; 1000],
        _tracked: ledger.item(number),
    })));
    ledger.assert_each_once();
}

thread_local! {
    /// How many [`Nothing`]s this thread has dropped.
    static NOTHINGS: Cell<usize> = const { Cell::new(0) };
}

/// A type without a size, with a destructor.
struct Nothing;

impl Drop for Nothing {
    fn drop(&mut self) {
        NOTHINGS.set(NOTHINGS.get() + 1);
    }
}

fn zero_sized<K: Keeper>() {
    for size in SIZES {
        NOTHINGS.set(0);
        let kept = K::keep((0..size).map(|_| Nothing));
        assert_eq!(NOTHINGS.get(), 0);
        drop(kept);
        assert_eq!(NOTHINGS.get(), size);
    }
}

/// Runs a job, and returns the number of the item whose drop panicked, if any.
fn blast(job: impl FnOnce()) -> Option<usize> {
    let payload = catch_unwind(AssertUnwindSafe(job)).err()?;
    Some(*payload.downcast().expect("the number of a bomb"))
}

/// Creates the items below `size`. The drops of those that `explodes` selects panic.
fn mined<K: Keeper>(
    ledger: &Ledger,
    size: usize,
    explodes: impl Fn(usize) -> bool,
) -> K::Kept<Tracked> {
    K::keep((0..size).map(|n| if explodes(n) { ledger.bomb(n) } else { ledger.item(n) }))
}

/// The panic reaches the thread that drops the last handle. The other items are dropped all the same.
fn one_panic<K: Keeper>() {
    const SIZE: usize = 130;
    for bomb in [0, 1, 62, 63, 64, 100, SIZE - 1] {
        let ledger = Ledger::new(SIZE);
        let kept = mined::<K>(&ledger, SIZE, |n| n == bomb);
        assert_eq!(blast(|| drop(kept)), Some(bomb));
        ledger.assert_each_once();
    }
}

/// One of the panics is propagated, and all items are dropped.
fn several_panics<K: Keeper>() {
    const SIZE: usize = 130;
    for every in [1, 2, 50] {
        let ledger = Ledger::new(SIZE);
        let kept = mined::<K>(&ledger, SIZE, |n| n % every == 0);
        let number = blast(|| drop(kept)).expect("a panic");
        assert_eq!(number % every, 0);
        ledger.assert_each_once();
    }
}

fn panic_on_another_thread<K: Keeper>() {
    let ledger = Ledger::new(130);
    let kept = mined::<K>(&ledger, 130, |n| n == 7);
    let dropper = thread::scope(|scope| scope.spawn(|| drop(kept)).join());
    let payload = dropper.expect_err("a panic");
    assert_eq!(payload.downcast_ref(), Some(&7_usize));
    ledger.assert_each_once();
}

/// A handle that is dropped during unwinding drops the remaining items.
fn while_panicking<K: Keeper>() {
    let ledger = Ledger::new(130);
    let kept = mined::<K>(&ledger, 130, |_| false);
    let number = blast(move || {
        let _kept = kept;
        std::panic::panic_any(1000_usize);
    });
    assert_eq!(number, Some(1000));
    ledger.assert_each_once();
}

/// If items panic during unwinding, the first panic continues and the program does not abort.
fn panics_while_panicking<K: Keeper>() {
    let ledger = Ledger::new(130);
    let kept = mined::<K>(&ledger, 130, |n| n % 50 == 7);
    let number = blast(move || {
        let _kept = kept;
        std::panic::panic_any(1000_usize);
    });
    assert_eq!(number, Some(1000));
    ledger.assert_each_once();
}

/// An iterator that panics at `end`. The drops of the items that `explodes` selects panic.
fn cut_short<'a>(
    ledger: &'a Ledger,
    end: usize,
    explodes: impl Fn(usize) -> bool + 'a,
) -> impl Iterator<Item = Tracked> + 'a {
    (0..).map(move |n| match n {
        n if n == end => std::panic::panic_any(1000_usize),
        n if explodes(n) => ledger.bomb(n),
        n => ledger.item(n),
    })
}

/// The items that the iterator yielded are pushed or dropped, and the injector stays usable.
#[test]
fn push_batch_cut_short() {
    for end in SIZES {
        let ledger = Ledger::new(end + 100);
        let injector = Injector::new();
        let number = blast(|| injector.push_batch(cut_short(&ledger, end, |_| false)));
        assert_eq!(number, Some(1000));
        let pushed = injector.len();
        assert_eq!(pushed + ledger.dropped(), end);
        (0..pushed).for_each(|n| assert_eq!(injector.steal().success().unwrap().number, n));
        injector.push_batch((end..end + 100).map(|n| ledger.item(n)));
        assert_eq!(injector.steal().success().map(|item| item.number), Some(end));
        drop(injector);
        ledger.assert_each_once();
    }
}

/// If items that were not pushed panic as well, the panic of the iterator continues and the program does
/// not abort.
#[test]
fn push_batch_cut_short_with_bombs() {
    const END: usize = 100;
    let ledger = Ledger::new(END);
    let injector = Injector::new();
    // The drops of pushed items do not panic.
    let number = blast(|| injector.push_batch(cut_short(&ledger, END, |n| n > 63)));
    assert_eq!(number, Some(1000));
    assert_eq!((injector.len(), ledger.dropped()), (63, END - 63));
    drop(injector);
    ledger.assert_each_once();
}

/// Items that the owner leaves behind can be stolen, and the last thief drops the rest.
fn worker_first<F: Flavour>() {
    let ledger = Ledger::new(100);
    let (worker, stealer) = F::keep((0..100).map(|n| ledger.item(n)));
    let other = stealer.clone();
    drop(worker);
    assert_eq!(ledger.dropped(), 0);
    assert_eq!(stealer.steal().success().map(|item| item.number), Some(0));
    drop(stealer);
    assert_eq!(ledger.dropped(), 1);
    drop(other);
    ledger.assert_each_once();
}

fn stealer_first<F: Flavour>() {
    let ledger = Ledger::new(100);
    let (worker, stealer) = F::keep((0..100).map(|n| ledger.item(n)));
    drop((stealer.clone(), stealer));
    assert_eq!(ledger.dropped(), 0);
    assert_eq!(worker.pop().map(|item| item.number), Some(99));
    drop(worker.stealer());
    assert_eq!(ledger.dropped(), 1);
    drop(worker);
    ledger.assert_each_once();
}

/// A slot that was used before is not mistaken for one that holds an item, and vice versa.
fn taken_and_left<F: Flavour>() {
    for left in 0..=16 {
        let ledger = Ledger::new(400 + left);
        let (worker, stealer) = F::at(16, 0);
        for n in 0..400 {
            worker.push(ledger.item(n));
            drop(if n % 3 == 0 { worker.pop() } else { stealer.steal().success() });
        }
        assert_eq!(ledger.dropped(), 400);
        (0..left).for_each(|n| worker.push(ledger.item(400 + n)));
        assert_eq!(ledger.dropped(), 400);
        drop((worker, stealer));
        ledger.assert_each_once();
    }
}

/// The owner is dropped while thieves steal. The last thief drops the rest.
fn thieves_inside<F: Flavour>() {
    const SIZE: usize = 300;
    for round in 0..200 {
        let ledger = Ledger::new(SIZE);
        let (worker, stealer) = F::keep((0..SIZE).map(|n| ledger.item(n)));
        thread::scope(|scope| {
            for thief in 0..3 {
                let stealer = stealer.clone();
                scope.spawn(move || {
                    (0..(round * (thief + 1)) % SIZE).for_each(|_| drop(stealer.steal()));
                });
            }
            drop(stealer);
            (0..round % 50).for_each(|_| drop(worker.pop()));
            drop(worker);
        });
        ledger.assert_each_once();
    }
}

/// Items that a thief has stolen belong to the thief's deque.
fn batches<F: Flavour>() {
    let ledger = Ledger::new(200);
    let injector = Injected::keep((0..100).map(|n| ledger.item(n)));
    let (victim, stealer) = F::keep((100..200).map(|n| ledger.item(n)));
    let (mine, my_stealer) = F::with_room(200);
    for _ in 0..3 {
        assert!(injector.steal_batch(&mine).is_success());
        assert!(stealer.steal_batch(&mine).is_success());
    }
    let moved = mine.len();
    assert!(moved > 50);
    assert_eq!(ledger.dropped(), 0);
    drop((my_stealer, mine));
    assert_eq!(ledger.dropped(), moved);
    drop((victim, stealer, injector));
    ledger.assert_each_once();
}
