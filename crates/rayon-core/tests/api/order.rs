//! The contract of order on a pool of one thread: newest first, or oldest first for the `fifo` functions.

use std::sync::Arc;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

use crate::common::{Order, with_built, with_pool};

/// More tasks than fit into any queue at first.
const MANY: usize = 5000;

fn forwards(count: usize) -> Vec<usize> {
    (0..count).collect()
}

fn backwards(count: usize) -> Vec<usize> {
    (0..count).rev().collect()
}

/// Returns the numbers of the tasks that `body` spawns, in the order in which they ran.
fn spawned(
    pool: impl FnOnce(Box<dyn FnOnce(&ThreadPool) + '_>),
    body: impl Fn(&ThreadPool, &Arc<Order>),
) -> Vec<usize> {
    let order = Arc::new(Order::default());
    pool(Box::new(|pool| body(pool, &order)));
    order.take()
}

fn one_thread(body: impl Fn(&Arc<Order>) + Sync) -> Vec<usize> {
    spawned(|run| with_pool(1, run), |pool, order| pool.install(|| body(order)))
}

fn say(order: &Arc<Order>, number: usize) -> impl FnOnce() + Send + 'static {
    let order = Arc::clone(order);
    move || order.push(number)
}

#[test]
fn spawn_is_newest_first() {
    for count in [3, MANY] {
        let order = one_thread(|order| (0..count).for_each(|n| rayon_core::spawn(say(order, n))));
        assert_eq!(order, backwards(count));
    }
}

#[test]
fn spawn_fifo_is_oldest_first() {
    for count in [3, MANY] {
        let order =
            one_thread(|order| (0..count).for_each(|n| rayon_core::spawn_fifo(say(order, n))));
        assert_eq!(order, forwards(count));
    }
}

#[test]
fn spawns_from_elsewhere_are_oldest_first() {
    let order = spawned(
        |run| with_pool(1, run),
        |pool, order| {
            let (go, gate) = std::sync::mpsc::channel::<()>();
            pool.spawn(move || gate.recv().unwrap_or(()));
            for n in 0..10 {
                if n % 2 == 0 { pool.spawn(say(order, n)) } else { pool.spawn_fifo(say(order, n)) }
            }
            drop(go);
        },
    );
    assert_eq!(order, forwards(10));
}

#[test]
fn scope_is_newest_first() {
    for count in [3, MANY] {
        let order = one_thread(|order| {
            rayon_core::scope(|scope| (0..count).for_each(|n| scope.spawn(move |_| order.push(n))));
        });
        assert_eq!(order, backwards(count));
    }
}

#[test]
fn scope_fifo_is_oldest_first() {
    for count in [3, MANY] {
        let order = one_thread(|order| {
            rayon_core::scope_fifo(|scope| {
                (0..count).for_each(|n| scope.spawn_fifo(move |_| order.push(n)))
            });
        });
        assert_eq!(order, forwards(count));
    }
}

/// Each `spawn_fifo` pushes a placeholder, which runs the oldest closure of the fifo queue.
#[test]
fn spawn_and_spawn_fifo() {
    let order = one_thread(|order| {
        for n in 0..6 {
            if n % 2 == 0 {
                rayon_core::spawn(say(order, n))
            } else {
                rayon_core::spawn_fifo(say(order, n))
            }
        }
    });
    assert_eq!(order, [1, 4, 3, 2, 5, 0]);
}

#[test]
fn scopes_of_both_kinds() {
    let order = one_thread(|order| {
        rayon_core::scope(|outer| {
            rayon_core::scope_fifo(|inner| {
                outer.spawn(move |_| order.push(0));
                inner.spawn_fifo(move |_| order.push(1));
                outer.spawn(move |_| order.push(2));
                inner.spawn_fifo(move |_| order.push(3));
            });
        });
    });
    assert_eq!(order, [1, 2, 3, 0]);
    let order = one_thread(|order| {
        rayon_core::scope_fifo(|outer| {
            rayon_core::scope(|inner| {
                outer.spawn_fifo(move |_| order.push(0));
                inner.spawn(move |_| order.push(1));
                outer.spawn_fifo(move |_| order.push(2));
                inner.spawn(move |_| order.push(3));
            });
        });
    });
    assert_eq!(order, [3, 0, 1, 2]);
}

#[test]
fn two_fifo_scopes_have_two_queues() {
    let order = one_thread(|order| {
        rayon_core::scope_fifo(|outer| {
            rayon_core::scope_fifo(|inner| {
                outer.spawn_fifo(move |_| order.push(0));
                inner.spawn_fifo(move |_| order.push(1));
                outer.spawn_fifo(move |_| order.push(2));
                inner.spawn_fifo(move |_| order.push(3));
            });
        });
    });
    assert_eq!(order, [1, 0, 3, 2]);
}

#[test]
fn spawns_within_spawns() {
    // Depth first.
    let order = one_thread(|order| {
        rayon_core::scope(|scope| {
            for n in 0..3 {
                scope.spawn(move |scope| {
                    order.push(10 * n);
                    (1..3).for_each(|m| scope.spawn(move |_| order.push(10 * n + m)));
                });
            }
        });
    });
    assert_eq!(order, [20, 22, 21, 10, 12, 11, 0, 2, 1]);
    // Breadth first.
    let order = one_thread(|order| {
        rayon_core::scope_fifo(|scope| {
            for n in 0..3 {
                scope.spawn_fifo(move |scope| {
                    order.push(10 * n);
                    (1..3).for_each(|m| scope.spawn_fifo(move |_| order.push(10 * n + m)));
                });
            }
        });
    });
    assert_eq!(order, [0, 10, 20, 1, 2, 11, 12, 21, 22]);
}

#[test]
fn joins_among_spawns() {
    let order = one_thread(|order| {
        rayon_core::spawn(say(order, 9));
        let first = || {
            order.push(0);
            rayon_core::spawn(say(order, 7));
        };
        rayon_core::join(first, || order.push(1));
        // The end of the scope runs the newest task only, not all of them.
        rayon_core::scope(|scope| scope.spawn(|_| order.push(2)));
        order.push(3);
    });
    // When a task of the first half runs is unspecified, but it runs before the one from before the
    // join.
    let place = |number| order.iter().position(|&other| other == number).expect("all have run");
    assert!(place(0) < place(1) && place(1) < place(2) && place(2) < place(3), "{order:?}");
    assert!(place(0) < place(7) && place(7) < place(9) && place(3) < place(9), "{order:?}");
    assert_eq!(order.len(), 6);
}

#[test]
fn joins_within_joins() {
    fn walk(order: &Order, from: usize, to: usize) {
        if to - from == 1 {
            order.push(from);
        } else {
            let middle = from.midpoint(to);
            rayon_core::join(|| walk(order, from, middle), || walk(order, middle, to));
        }
    }
    assert_eq!(one_thread(|order| walk(order, 0, 1000)), forwards(1000));
}

/// All tasks of a thread are in one queue.
#[test]
fn breadth_first() {
    #[expect(deprecated, reason = "it can still be asked for")]
    let builder = || ThreadPoolBuilder::new().num_threads(1).breadth_first();
    let order = spawned(
        |run| with_built(builder(), run),
        |pool, order| {
            pool.install(|| {
                rayon_core::spawn(say(order, 0));
                rayon_core::scope(|scope| {
                    scope.spawn(|scope| {
                        order.push(1);
                        scope.spawn(|_| order.push(3));
                    });
                    scope.spawn(|_| order.push(2));
                });
                order.push(4);
                rayon_core::spawn_fifo(say(order, 5));
                rayon_core::spawn(say(order, 6));
            });
        },
    );
    assert_eq!(order, forwards(7));
}
