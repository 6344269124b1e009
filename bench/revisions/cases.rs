//! The cases: what runs on both revisions.

use harness::metric;
use harness::row::Row;

/// The family of all cases.
pub(crate) const WORKLOAD: &str = "revisions";

/// One program with its size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) workers: usize,
    pub(crate) program: Program,
}

/// What runs. Times are per operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Program {
    /// A join in every call; an operation is a join.
    Fib,
    /// Tasks of one scope, spawned by a worker; an operation is a task.
    Scope,
    /// One task spawns all others; an operation is a task.
    SpawnInside,
    /// A thread outside the pool spawns all tasks; an operation is a task.
    SpawnOutside,
    /// A thread outside the pool spawns all tasks in one call; an operation is a task.
    SpawnBatch,
    /// Every task spawns two; an operation is a task.
    SpawnTree,
    /// A task spawns tasks and joins each one at once; an operation is a task.
    SpawnJoin,
    /// A task spawns batches of this size and joins each one at once; an operation is a task.
    BatchJoin { size: u64 },
    /// Every task spawns two tasks one by one and joins both; an operation is a task.
    SpawnJoinTree,
    /// Every task spawns a batch of two and joins it; an operation is a task.
    BatchJoinTree,
    /// A thread outside waits for a task on a pool that was idle for a millisecond; an operation is a task.
    Answer { calls: u32 },
    /// A sum, called this often by a thread outside the pool; an operation is a call.
    ReduceOutside { items: usize, calls: u32 },
    /// A sum, called this often by a worker; an operation is a call.
    ReduceInside { items: usize, calls: u32 },
    /// Random numbers; an operation is a sort.
    Sort { items: usize },
    /// Batches of about 140 ns each with `Distribution::Pull`; an operation is a batch.
    Pipeline { batches: u64 },
}

const fn case(id: &'static str, title: &'static str, workers: usize, program: Program) -> Case {
    Case { id, title, workers, program }
}

use Program::*;

/// Every case, in the order of the table.
pub(crate) const ALL: &[Case] = &[
    case("fib/1", "fib(36), a join in every call, 1 worker", 1, Fib),
    case("fib/2", "fib(36), a join in every call, 2 workers", 2, Fib),
    case("scope/2", "100,000 tasks of one scope, 2 workers", 2, Scope),
    case("spawn/inside/1", "a task spawns 1,000,000, 1 worker", 1, SpawnInside),
    case("spawn/inside/2", "a task spawns 1,000,000, 2 workers", 2, SpawnInside),
    case("spawn/outside/2", "a thread outside spawns 1,000,000, 2 workers", 2, SpawnOutside),
    case("spawn/batch/2", "a thread outside spawns a batch of 1,000,000, 2 workers", 2, SpawnBatch),
    case("spawn/tree/2", "every task spawns two, 1,000,000 tasks, 2 workers", 2, SpawnTree),
    case("join/spawn/1", "a task spawns and joins tasks one by one, 1 worker", 1, SpawnJoin),
    case("join/spawn/2", "a task spawns and joins tasks one by one, 2 workers", 2, SpawnJoin),
    case(
        "join/pairs/1",
        "a task spawns and joins batches of 2, 1 worker",
        1,
        BatchJoin { size: 2 },
    ),
    case(
        "join/pairs/2",
        "a task spawns and joins batches of 2, 2 workers",
        2,
        BatchJoin { size: 2 },
    ),
    case(
        "join/tens/1",
        "a task spawns and joins batches of 10, 1 worker",
        1,
        BatchJoin { size: 10 },
    ),
    case(
        "join/tens/2",
        "a task spawns and joins batches of 10, 2 workers",
        2,
        BatchJoin { size: 10 },
    ),
    case("join/spawn-tree/1", "every task spawns two and joins them, 1 worker", 1, SpawnJoinTree),
    case("join/spawn-tree/2", "every task spawns two and joins them, 2 workers", 2, SpawnJoinTree),
    case("join/batch-tree/1", "every task joins a batch of two, 1 worker", 1, BatchJoinTree),
    case("join/batch-tree/2", "every task joins a batch of two, 2 workers", 2, BatchJoinTree),
    case(
        "latency/after-1ms",
        "a thread outside waits for a task after 1 ms without any, 2 workers",
        2,
        Answer { calls: 100 },
    ),
    case(
        "reduce/outside/1e4",
        "parallel::reduce of 10,000 u64, called from outside",
        2,
        ReduceOutside { items: 10_000, calls: 5_000 },
    ),
    case(
        "reduce/outside/1e6",
        "parallel::reduce of 1,000,000 u64, called from outside",
        2,
        ReduceOutside { items: 1_000_000, calls: 100 },
    ),
    case(
        "reduce/inside/1e4",
        "parallel::reduce of 10,000 u64, called by a worker",
        2,
        ReduceInside { items: 10_000, calls: 5_000 },
    ),
    case(
        "reduce/inside/1e6",
        "parallel::reduce of 1,000,000 u64, called by a worker",
        2,
        ReduceInside { items: 1_000_000, calls: 100 },
    ),
    case("sort/1e6", "parallel::sort_unstable of 1,000,000 u64", 2, Sort { items: 1_000_000 }),
    case(
        "pipeline/pull",
        "a pipeline of 100,000 batches of 140 ns, Pull, 2 workers",
        2,
        Pipeline { batches: 100_000 },
    ),
];

/// Returns the cases as rows without entries, from which the harness selects by name.
pub(crate) fn rows() -> Vec<Row> {
    let row = |case: &Case| {
        Row::of_pools(WORKLOAD, case.id.into(), case.title.into(), vec![&metric::TIME])
    };
    ALL.iter().map(row).collect()
}

pub(crate) fn find(id: &str) -> Option<Case> {
    ALL.iter().copied().find(|case| case.id == id)
}
