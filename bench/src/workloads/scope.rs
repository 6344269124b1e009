//! The scope workload: closures that borrow, spawned in a scope by a worker. And tasks whose handles are all joined.

use std::time::Instant;

use harness::metric;
use harness::row::{Row, Sample};
use harness::target::{Target, Than};

use crate::peers::{self, Pool, heist, kept, rayon};

/// The number of parts in a sample.
const PARTS: usize = if cfg!(test) { 200 } else { 200_000 };

/// The name of the pool that heist is compared with.
const REFERENCE: &str = "rayon";

/// The number of parts of each scope, the title, and the highest wanted ratios to rayon on one worker and on two.
const CASES: [(usize, &str, &str, [f64; 2]); 3] = [
    (2, "pairs", "scopes of 2 parts", [0.6, 0.5]),
    (100, "hundreds", "scopes of 100 parts", [0.6, 0.5]),
    (PARTS, "all", "one scope of 200,000 parts", [0.6, 0.5]),
];

/// The number of tasks that are spawned before the first of them is joined.
const HANDLES: usize = 100;

pub(crate) fn rows() -> Vec<Row> {
    let scopes = CASES.into_iter().flat_map(|case| [1, 2].map(|workers| of_scopes(case, workers)));
    scopes.chain([1, 2].map(of_handles)).collect()
}

fn of_scopes((parts, id, title, limits): (usize, &str, &str, [f64; 2]), workers: usize) -> Row {
    let title = format!("{title}, {}", peers::workers(workers));
    let mut row = Row::of_pools("scope", format!("{id}/{workers}"), title, vec![&metric::TASK]);
    row.references = vec![REFERENCE];
    row.workers = Some(workers);
    row.enter(heist::Stealing::NAME, move || {
        let pool = kept::pool::<heist::Stealing>(workers);
        measure(
            parts,
            |f| pool.install(f),
            |cells| {
                ::heist::scope(|scope| {
                    cells.iter_mut().for_each(|cell| scope.spawn(|_| *cell += 1))
                });
            },
        )
    });
    row.enter(rayon::ThreadPool::NAME, move || {
        let pool = kept::pool::<rayon::ThreadPool>(workers);
        measure(
            parts,
            |f| pool.install(f),
            |cells| {
                ::rayon::scope(|scope| {
                    cells.iter_mut().for_each(|cell| scope.spawn(|_| *cell += 1))
                });
            },
        )
    });
    row.targets = vec![Target {
        of: heist::Stealing::NAME,
        metric: &metric::TASK,
        than: Than::Entry(REFERENCE),
        at_most: limits[workers - 1],
    }];
    row
}

/// Runs scopes of `parts` parts on a worker, and checks that each part has run once.
fn measure(
    parts: usize,
    install: impl FnOnce(Box<dyn FnOnce() -> Sample + Send>) -> Sample,
    scope: impl Fn(&mut [u32]) + Send + 'static,
) -> Sample {
    install(Box::new(move || {
        let mut cells = vec![0; parts];
        let scopes = PARTS / parts;
        let start = Instant::now();
        (0..scopes).for_each(|_| scope(&mut cells));
        let time = start.elapsed();
        assert!(cells.iter().all(|&cell| cell as usize == scopes), "each part runs once");
        Sample::new(time, (scopes * parts) as u64)
    }))
}

/// Tasks that a worker spawns by the hundred, and joins in the order in which it has spawned them; and the same tasks without
/// joins, but for the last.
fn of_handles(workers: usize) -> Row {
    let title = format!("100 tasks, all of them joined, {}", peers::workers(workers));
    let mut row = Row::of_pools("scope", format!("handles/{workers}"), title, vec![&metric::TASK]);
    row.workers = Some(workers);
    row.enter(heist::Stealing::NAME, move || {
        let pool = kept::pool::<heist::Stealing>(workers);
        let rounds = PARTS / HANDLES;
        pool.install(|| {
            let start = Instant::now();
            for _ in 0..rounds {
                let spawn = |n| pool.pool().spawn(move || n);
                let handles: Vec<_> = (0..HANDLES).map(spawn).collect();
                let sum: usize = handles.into_iter().map(|handle| handle.join().unwrap()).sum();
                assert_eq!(sum, HANDLES * (HANDLES - 1) / 2);
            }
            Sample::new(start.elapsed(), (rounds * HANDLES) as u64)
        })
    });
    row
}
