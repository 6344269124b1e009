//! What is measured: a workload, on a strategy, with a number of workers.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// What the pool has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// A tree of tasks, each of which spawns two others and drops their handles.
    Spawn,
    /// A tree of joins.
    Join,
    /// A tree of closures in one scope.
    Scope,
    /// Tasks from threads outside of the pool, which join all handles in the end.
    Outside,
    /// The same, with these threads on a socket of their own.
    OutsideFar,
    /// A parallel loop over short items.
    Loop,
    /// A pipeline that delivers results in any order.
    Pipe,
    /// A pipeline that delivers results in the order of the source.
    PipeOrdered,
    /// A parallel sort.
    Sort,
}

/// Why a name is not that of a workload or strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    name: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not known; use one of {}", self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// Names the values of an enum.
macro_rules! names {
    ($type:ident: $($name:literal = $variant:ident,)*) => {
        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, UnknownName> {
                match name {
                    $($name => Ok(Self::$variant),)*
                    _ => Err(UnknownName { name: name.into(), known: vec![$($name),*] }),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

names!(Workload:
    "spawn" = Spawn,
    "join" = Join,
    "scope" = Scope,
    "outside" = Outside,
    "outside-far" = OutsideFar,
    "loop" = Loop,
    "pipe" = Pipe,
    "pipe-ordered" = PipeOrdered,
    "sort" = Sort,
);

/// How the pool keeps its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// A deque for each worker.
    WorkStealing,
    /// A deque with a lock for each worker.
    LockedDeques,
    /// One queue with a lock.
    GlobalQueue,
}

names!(Strategy:
    "work-stealing" = WorkStealing,
    "locked-deques" = LockedDeques,
    "global-queue" = GlobalQueue,
);

impl Strategy {
    pub(crate) fn of_heist(self) -> heist::Strategy {
        match self {
            Self::WorkStealing => heist::Strategy::WorkStealing,
            Self::LockedDeques => heist::Strategy::LockedDeques,
            Self::GlobalQueue => heist::Strategy::GlobalQueue,
        }
    }
}

/// On which core each thread runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The cores of the workers.
    pub workers: Vec<usize>,
    /// The cores of the threads that submit tasks from outside. There are as many of them.
    pub producers: Vec<usize>,
    /// The core of the thread that starts everything.
    pub main: usize,
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Case {
    /// What the pool has to do.
    pub workload: Workload,
    /// How the pool keeps its tasks.
    pub strategy: Strategy,
    /// Where threads run. There is a worker for each core in it.
    pub placement: Placement,
    /// How long the work of each worker takes if it is evenly distributed, in nanoseconds. Trees round it up to a power of
    /// two.
    pub span: u64,
}

impl Case {
    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.placement.workers.len()
    }

    /// Returns how many parts of this many nanoseconds there are for all workers.
    pub fn parts(&self, nanoseconds: u64) -> u64 {
        (self.span * self.workers() as u64 / nanoseconds).max(1)
    }
}
