//! What `heist sim --json` writes and `heist report` reads. It contains no real times, so that the same seed gives the same
//! bytes. Another build of the program may give others.

use heist_sim_workloads::{Machine, Measurement};
use serde::{Deserialize, Serialize};

/// The version of the format. A file of a newer one may lack what this program needs.
const FORMAT: u32 = 1;
/// The number of places in the source that are kept of each run.
const PLACES: usize = 12;

/// All points of a simulation. Times are in nanoseconds of virtual time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SimRecord {
    pub(crate) kind: Kind,
    pub(crate) format: u32,
    /// The version of heist that ran on the virtual cores.
    pub(crate) version: String,
    /// The command that gives the same file.
    pub(crate) command: String,
    /// The machine with its constants. The generic one is as large as the largest run needs.
    pub(crate) machine: Machine,
    pub(crate) first_seed: u64,
    pub(crate) seeds: u64,
    /// The work for each core, if it is evenly distributed.
    pub(crate) span: u64,
    pub(crate) points: Vec<SimPoint>,
}

/// Distinguishes the file from one of `heist bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    #[serde(rename = "heist-simulation")]
    Simulation,
}

/// The part of a record that all versions have.
#[derive(Deserialize)]
struct Marked {
    #[serde(rename = "kind")]
    _kind: Kind,
    format: u32,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SimPoint {
    pub(crate) workload: String,
    pub(crate) strategy: String,
    /// The number of cores with a worker.
    pub(crate) cores: usize,
    pub(crate) seed: u64,
    /// T(1) / (P * T(P)), where T(1) has the same seed and is scaled to the same amount of work.
    pub(crate) efficiency: f64,
    pub(crate) elapsed: u64,
    pub(crate) parts: u64,
    pub(crate) tasks: u64,
    /// The tasks that moved from one worker to another.
    pub(crate) moved: u64,
    /// The steals from a worker on the same NUMA node, and on another one. Older records have none.
    #[serde(default)]
    pub(crate) near_steals: u64,
    #[serde(default)]
    pub(crate) far_steals: u64,
    pub(crate) parks: u64,
    /// The number of threads that did a part of the work.
    pub(crate) worked: usize,
    /// The time until the last of these threads has begun.
    pub(crate) ramp: u64,
    /// The time from the end of the first of these threads' work to the end of the run.
    pub(crate) tail: u64,
    pub(crate) split: Split,
    /// The most expensive places in the source.
    pub(crate) places: Vec<Place>,
}

/// What the cores of the workers, and of the threads that submit tasks from outside, did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Split {
    pub(crate) work: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) pauses: u64,
    pub(crate) system_calls: u64,
    pub(crate) allocation: u64,
    pub(crate) clock: u64,
    pub(crate) idle: u64,
}

/// What a line of the source costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) place: String,
    /// The time that threads spent there.
    pub(crate) stall: u64,
    /// The part of it for which they waited for other requests.
    pub(crate) queued: u64,
    pub(crate) operations: u64,
    pub(crate) transfers: u64,
}

impl SimRecord {
    /// Returns a record without points.
    pub(super) fn new(command: String, machine: Machine, first_seed: u64, seeds: u64) -> Self {
        Self {
            kind: Kind::Simulation,
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            command,
            machine,
            first_seed,
            seeds,
            span: 0,
            points: Vec::new(),
        }
    }

    /// Returns the contents of the file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("the record has no maps with other keys");
        bytes.push(b'\n');
        bytes
    }

    /// Returns `true` if the bytes are those of a simulation, even if of another version.
    pub(crate) fn is_in(bytes: &[u8]) -> bool {
        serde_json::from_slice::<Marked>(bytes).is_ok()
    }

    /// Returns `true` if the bytes were written by a newer version of this program.
    pub(crate) fn is_newer(bytes: &[u8]) -> bool {
        serde_json::from_slice::<Marked>(bytes).is_ok_and(|marked| marked.format > FORMAT)
    }
}

impl SimPoint {
    /// Returns the point of a measurement. `outside` is the number of threads that submit tasks from outside.
    pub(super) fn new(measured: &Measurement, efficiency: f64, outside: usize) -> Self {
        let report = &measured.report;
        let begun = report.threads.iter().map(|thread| thread.first_work).max();
        let ended = report.threads.iter().map(|thread| thread.last_work).min();
        let place = |site: &heist_sim::report::SiteReport| Place {
            place: site.place.clone(),
            stall: site.stall,
            queued: site.queued,
            operations: site.operations,
            transfers: site.transfers,
        };
        Self {
            workload: measured.workload.name().into(),
            strategy: measured.strategy.name().into(),
            cores: measured.workers,
            seed: measured.seed,
            efficiency,
            elapsed: measured.elapsed,
            parts: measured.parts,
            tasks: measured.tasks,
            moved: measured.moved,
            near_steals: measured.near_steals,
            far_steals: measured.far_steals,
            parks: measured.parks,
            worked: report.threads.len(),
            ramp: begun.unwrap_or(0),
            tail: ended.map_or(0, |ended| report.elapsed.saturating_sub(ended)),
            split: Split::new(&report.split, report.elapsed * (measured.workers + outside) as u64),
            places: report.sites.iter().take(PLACES).map(place).collect(),
        }
    }
}

impl Split {
    /// Returns the split of this time. The simulator counts the cores without a thread as idle; this split has none of them.
    fn new(split: &heist_sim::report::Split, time: u64) -> Self {
        let busy = Self {
            work: split.work,
            hits: split.hits,
            misses: split.misses,
            pauses: split.pauses,
            system_calls: split.system_calls,
            allocation: split.allocation,
            clock: split.clock,
            idle: 0,
        };
        Self { idle: time.saturating_sub(busy.total()), ..busy }
    }

    /// Returns the time of all parts.
    pub(crate) fn total(&self) -> u64 {
        self.parts().iter().map(|(_, time)| time).sum()
    }

    /// Returns the parts with their names, in the order in which they are shown.
    pub(crate) fn parts(&self) -> [(&'static str, u64); 7] {
        [
            ("work", self.work),
            ("hits", self.hits),
            ("misses", self.misses),
            ("pauses", self.pauses),
            ("system calls", self.system_calls),
            ("other", self.allocation + self.clock),
            ("idle", self.idle),
        ]
    }
}
