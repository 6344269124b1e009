//! The parts of the libraries that are tested, and how much of each.

use crate::{Error, Monitor, engines, forks, loops, pipelines, pools, queues};

/// A part of the libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The deques of every flavour, and the injector.
    Queues,
    /// Pools of every strategy: tasks, batches, handles, panics, stops.
    Pools,
    /// `join`, `scope` and `isolate`.
    Forks,
    /// Parallel loops and sorts.
    Loops,
    /// Pipelines.
    Pipelines,
    /// The engine under `rayon-core`.
    Engines,
}

/// How much of a subject to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// About a tenth, for sanitizers.
    Quick,
    /// Everything.
    Normal,
}

impl Size {
    /// Returns the value for this size.
    pub(crate) fn choose<T>(self, quick: T, normal: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Normal => normal,
        }
    }
}

impl Subject {
    /// Every subject.
    pub const ALL: [Self; 6] =
        [Self::Queues, Self::Pools, Self::Forks, Self::Loops, Self::Pipelines, Self::Engines];

    /// Returns the name by which the program `stress` knows the subject.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queues => "queues",
            Self::Pools => "pools",
            Self::Forks => "forks",
            Self::Loops => "loops",
            Self::Pipelines => "pipelines",
            Self::Engines => "engines",
        }
    }

    /// Returns what the cases of the subject count, in the plural.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Queues | Self::Loops | Self::Pipelines => "items",
            Self::Pools => "tasks",
            Self::Forks => "leaves",
            Self::Engines => "rounds",
        }
    }

    /// Runs all cases of the subject, and stops at the first that fails.
    ///
    /// The same seed gives the same cases. `monitor` learns what each part of the subject did.
    ///
    /// ```
    /// use heist_stress::{Monitor, Size, Subject};
    ///
    /// let monitor = Monitor::new(|line| println!("{line}"), |case| panic!("this case hangs: {case}"));
    /// Subject::Loops.run(7, Size::Quick, &monitor)?;
    /// # Ok::<(), heist_stress::Error>(())
    /// ```
    pub fn run(self, seed: u64, size: Size, monitor: &Monitor<'_>) -> Result<(), Error> {
        match self {
            Self::Queues => queues::run(seed, size, monitor),
            Self::Pools => pools::run(seed, size, monitor),
            Self::Forks => forks::run(seed, size, monitor),
            Self::Loops => loops::run(seed, size, monitor),
            Self::Pipelines => pipelines::run(seed, size, monitor),
            Self::Engines => engines::run(size, monitor),
        }
    }
}
