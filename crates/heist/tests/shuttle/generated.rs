//! Random programs of tasks that wait for each other, each under many schedules.
//!
//! A failure names the seed of its program. `HEIST_SEED=<seed> ci/schedules.sh generated` runs that program alone,
//! and together with `HEIST_REPLAY` one schedule of it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use heist::{JoinHandle, Pool, Strategy};
use heist_testkit::threads::LiveThreads;
use shuttle::thread;

use crate::plan::{Child, LOCKS, Node, Plan, Step};
use crate::scenarios::exact;

/// Programs for each strategy.
const SEEDS: u64 = 150;
/// Schedules of each kind for each program.
const SCHEDULES: usize = 100;

#[test]
fn work_stealing() {
    programs(Strategy::WorkStealing);
}

#[test]
fn locked_deques() {
    programs(Strategy::LockedDeques);
}

#[test]
fn global_queue() {
    programs(Strategy::GlobalQueue);
}

/// Runs the programs of all seeds, and checks that there were waits that needed another thread.
fn programs(strategy: Strategy) {
    let extra = Arc::new(AtomicUsize::new(0));
    let only = std::env::var("HEIST_SEED").ok().map(|seed| seed.parse().expect("a number"));
    for seed in only.map_or(0..SEEDS, |seed| seed..seed + 1) {
        let _name = NameOnPanic(seed, strategy);
        let (plan, extra) = (Arc::new(Plan::new(seed)), Arc::clone(&extra));
        heist_testkit::schedules::check(SCHEDULES, move || {
            extra.fetch_add(run(strategy, &plan), Relaxed);
        });
    }
    let extra = extra.load(Relaxed);
    println!("{strategy}: {extra} threads beyond the workers");
    assert!(only.is_some() || extra >= SEEDS as usize * SCHEDULES / 2, "few tasks wait: {extra}");
}

/// Prints the seed if the test fails.
struct NameOnPanic(u64, Strategy);

impl Drop for NameOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(seed, strategy) = self;
            eprintln!("the program of HEIST_SEED={seed} fails with {strategy}:");
            eprintln!("{:#?}", Plan::new(*seed));
        }
    }
}

/// The handle of a node, or what it has left.
type Handle = JoinHandle<Done>;

/// The result of a node.
struct Done {
    /// The number of nodes that this one has waited for, with itself.
    count: usize,
    /// The handles that it owned at its end.
    left: Vec<Handle>,
}

/// What all nodes of a run share.
struct World {
    pools: [Pool; 2],
    locks: [shuttle::sync::Mutex<()>; LOCKS],
    /// How often each node has run. Not shuttle's, because nothing depends on it.
    ran: Vec<AtomicUsize>,
}

/// Runs a program once. Returns how many threads were started beyond the workers.
fn run(strategy: Strategy, plan: &Plan) -> usize {
    let threads: [Arc<LiveThreads>; 2] = Default::default();
    let pool = |n: usize| {
        let (starting, stopping) = (Arc::clone(&threads[n]), Arc::clone(&threads[n]));
        let builder = Pool::builder().workers(plan.workers[n]).strategy(strategy);
        let builder = builder.on_thread_start(move |_| starting.started());
        builder.on_thread_stop(move |_| stopping.stopped()).build().expect("a small pool")
    };
    let world = Arc::new(World {
        pools: [pool(0), pool(1)],
        locks: [(); LOCKS].map(|()| shuttle::sync::Mutex::new(())),
        ran: (0..plan.nodes).map(|_| AtomicUsize::new(0)).collect(),
    });
    let outside = Place { world: &world, pool: 0 };
    let roots = plan.roots.iter().map(|root| world.pools[0].spawn(outside.task(root, Vec::new())));
    let mut handles: Vec<_> = roots.collect();
    let mut count = 0;
    while let Some(handle) = handles.pop() {
        let done = handle.join().unwrap();
        count += done.count;
        handles.extend(done.left);
    }
    assert_eq!(count, plan.nodes, "the results of all nodes have arrived");
    for (node, ran) in world.ran.iter().enumerate() {
        assert_eq!(ran.load(Relaxed), 1, "node {node} runs once");
    }
    let mut extra = 0;
    for (n, pool) in world.pools.iter().enumerate() {
        pool.stop();
        exact(pool);
        // At worst each node waits on a thread of its own, and each of them has a successor.
        let (most, bound) = (threads[n].most(), plan.workers[n] + 2 * plan.nodes);
        assert!(most <= bound, "{most} threads, not {bound}");
        extra += threads[n].ever().saturating_sub(plan.workers[n]);
    }
    extra
}

/// Where a node runs.
#[derive(Clone, Copy)]
struct Place<'a> {
    world: &'a Arc<World>,
    /// The pool that it runs on.
    pool: usize,
}

impl Place<'_> {
    /// Returns a task that runs a node on the same pool.
    fn task(self, node: &Arc<Node>, owned: Vec<Handle>) -> impl FnOnce() -> Done + Send + 'static {
        let (world, pool, node) = (Arc::clone(self.world), self.pool, Arc::clone(node));
        move || Place { world: &world, pool }.node(&node, owned)
    }

    fn node(self, node: &Node, owned: Vec<Handle>) -> Done {
        self.world.ran[node.number].fetch_add(1, Relaxed);
        let mut done = Done { count: 1, left: owned };
        self.steps(&node.steps, &mut done);
        done
    }

    fn steps(self, steps: &[Step], done: &mut Done) {
        steps.iter().for_each(|step| self.step(step, done));
    }

    fn step(self, step: &Step, done: &mut Done) {
        match step {
            Step::Yield => thread::yield_now(),
            Step::Spawn(child) => {
                let given = done.give(child);
                done.left.push(heist::spawn(self.task(&child.node, given)));
            }
            Step::Join(position) => {
                let joined = done.left.remove(*position).join().unwrap();
                done.absorb(joined);
            }
            Step::Fork(one, another) => {
                let given = (done.give(one), done.give(another));
                let first = || self.node(&one.node, given.0);
                let (first, second) = heist::join(first, || self.node(&another.node, given.1));
                done.absorb(first);
                done.absorb(second);
            }
            Step::Scope(parts, steps) => self.scope(parts, steps, done),
            Step::Batch(tasks) => {
                let tasks: Vec<_> =
                    tasks.iter().map(|task| self.task(&task.node, done.give(task))).collect();
                let results = self.world.pools[self.pool].spawn_batch(tasks).join().unwrap();
                results.into_iter().for_each(|result| done.absorb(result));
            }
            Step::Lock(lock, steps) => heist::isolate(|| {
                let _guard = self.world.locks[*lock].lock().unwrap();
                self.steps(steps, done);
            }),
            Step::Install(child) => {
                let given = done.give(child);
                let there = Place { pool: 1 - self.pool, ..self };
                let run = || there.node(&child.node, given);
                done.absorb(self.world.pools[there.pool].install(run));
            }
        }
    }

    fn scope(self, parts: &[Child], steps: &[Step], done: &mut Done) {
        let given: Vec<_> = parts.iter().map(|part| done.give(part)).collect();
        let results: Vec<_> = parts.iter().map(|_| Mutex::new(None)).collect();
        heist::scope(|scope| {
            for ((part, given), place) in parts.iter().zip(given).zip(&results) {
                scope.spawn(move |_| {
                    let result = self.node(&part.node, given);
                    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                });
            }
            self.steps(steps, done);
        });
        for place in results {
            let result = place.into_inner().unwrap_or_else(PoisonError::into_inner);
            done.absorb(result.expect("every part has ended"));
        }
    }
}

impl Done {
    /// Takes out the handles that a child is given.
    fn give(&mut self, child: &Child) -> Vec<Handle> {
        child.gets.iter().map(|&position| self.left.remove(position)).collect()
    }

    /// Adds the result of a child.
    fn absorb(&mut self, child: Self) {
        self.count += child.count;
        self.left.extend(child.left);
    }
}
