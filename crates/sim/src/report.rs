//! What a simulation has spent its time on, and where.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::panic::Location;

use serde::Serialize;

use crate::costs::Picos;
use crate::directory::{AddressHasher, Directory};
use crate::kernel;
use crate::line::{LineUse, Outcome};

/// A place in the source.
pub(crate) type SiteId = &'static Location<'static>;

/// The number of places and of lines in a report.
const REPORTED: usize = 24;

/// What a core does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Activity {
    Work,
    Hit,
    Miss,
    Pause,
    SystemCall,
    Allocation,
    Clock,
}

const ACTIVITIES: usize = 7;

/// Collects what happens between [`begin`] and [`end`].
#[derive(Default)]
pub(crate) struct Recorder {
    is_on: bool,
    start: Picos,
    end: Picos,
    spent: [Picos; ACTIVITIES],
    sites: HashMap<usize, (Option<SiteId>, SiteUse), BuildHasherDefault<AddressHasher>>,
    pub(crate) accesses: u64,
    pub(crate) switches: u64,
    pub(crate) parks: u64,
    pub(crate) wakes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct SiteUse {
    operations: u64,
    transfers: u64,
    stall: Picos,
    queued: Picos,
}

impl Recorder {
    /// Starts anew.
    pub(crate) fn begin(&mut self, now: Picos) {
        *self = Self { is_on: true, start: now, ..Self::default() };
    }

    pub(crate) fn end(&mut self, now: Picos) {
        if self.is_on {
            self.is_on = false;
            self.end = now;
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    #[inline]
    pub(crate) fn spend(&mut self, activity: Activity, time: Picos) {
        if self.is_on {
            self.spent[activity as usize] += time;
        }
    }

    pub(crate) fn access(&mut self, site: SiteId, outcome: &Outcome, stall: Picos) {
        let activity = if outcome.is_transfer { Activity::Miss } else { Activity::Hit };
        self.spent[activity as usize] += stall;
        self.accesses += 1;
        let (known, uses) = self.sites.entry(std::ptr::from_ref(site).addr()).or_default();
        *known = Some(site);
        uses.operations += 1;
        uses.stall += stall;
        if outcome.is_transfer {
            uses.transfers += 1;
            uses.queued += outcome.queued;
        }
    }

    /// Returns the report. `threads` has the times of each thread's first and last work.
    pub(crate) fn report(
        &self,
        cores: usize,
        directory: &Directory,
        threads: impl Iterator<Item = (String, Option<(Picos, Picos)>)>,
        left: Vec<String>,
    ) -> Report {
        let elapsed = self.end.saturating_sub(self.start);
        let busy: Picos = self.spent.iter().sum();
        let spent = |activity: Activity| nanoseconds(self.spent[activity as usize]);
        let since = |at: Picos| nanoseconds(at.saturating_sub(self.start));
        Report {
            elapsed: nanoseconds(elapsed),
            cores,
            split: Split {
                work: spent(Activity::Work),
                hits: spent(Activity::Hit),
                misses: spent(Activity::Miss),
                pauses: spent(Activity::Pause),
                system_calls: spent(Activity::SystemCall),
                allocation: spent(Activity::Allocation),
                clock: spent(Activity::Clock),
                idle: nanoseconds((elapsed * cores as u64).saturating_sub(busy)),
            },
            sites: self.sites(),
            lines: lines(directory),
            threads: threads
                .filter_map(|(name, times)| {
                    let (first, last) = times?;
                    Some(ThreadReport { name, first_work: since(first), last_work: since(last) })
                })
                .collect(),
            accesses: self.accesses,
            switches: self.switches,
            parks: self.parks,
            wakes: self.wakes,
            left,
        }
    }

    /// Returns the most expensive places. A place that was inlined several times has several identities; they are added up.
    fn sites(&self) -> Vec<SiteReport> {
        let mut merged: BTreeMap<String, SiteUse> = BTreeMap::new();
        for (site, uses) in self.sites.values() {
            let Some(site) = site else { continue };
            let sum = merged.entry(place(site)).or_default();
            sum.operations += uses.operations;
            sum.transfers += uses.transfers;
            sum.stall += uses.stall;
            sum.queued += uses.queued;
        }
        let report = |(place, uses): (String, SiteUse)| SiteReport {
            place,
            stall: nanoseconds(uses.stall),
            queued: nanoseconds(uses.queued),
            operations: uses.operations,
            transfers: uses.transfers,
        };
        let mut sites: Vec<_> = merged.into_iter().map(report).collect();
        // Stable: equal ones stay in the order of their names.
        sites.sort_by_key(|site| Reverse(site.stall));
        sites.truncate(REPORTED);
        sites
    }
}

fn lines(directory: &Directory) -> Vec<LineReport> {
    let report = |(number, uses): (usize, &LineUse)| {
        Some(LineReport {
            number,
            last_place: place(uses.site?),
            stall: nanoseconds(uses.stall),
            operations: uses.operations,
            transfers: uses.transfers,
        })
    };
    let mut lines: Vec<_> = directory.uses().filter(|(_, uses)| uses.stall > 0).collect();
    lines.sort_by_key(|(number, uses)| (Reverse(uses.stall), *number));
    lines.into_iter().take(REPORTED).filter_map(report).collect()
}

/// Returns a place as `heist/src/idle/mod.rs:120`, without the way that the package took to the file.
fn place(site: SiteId) -> String {
    let file = site.file().replace('\\', "/");
    let file = file.rsplit_once("../").map_or(&*file, |(_, end)| end);
    let file = file.rsplit_once("crates/").map_or(file, |(_, end)| end);
    format!("{file}:{}", site.line())
}

fn nanoseconds(time: Picos) -> u64 {
    (time + 500) / 1_000
}

/// What a simulation has spent its time on between [`begin`] and [`end`]. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The virtual time that has passed.
    pub elapsed: u64,
    /// The number of cores.
    pub cores: usize,
    /// What the cores did, added up over all of them.
    pub split: Split,
    /// The most expensive places in the source.
    pub sites: Vec<SiteReport>,
    /// The most expensive cache lines.
    pub lines: Vec<LineReport>,
    /// The threads that did declared work.
    pub threads: Vec<ThreadReport>,
    /// The number of accesses to shared memory.
    pub accesses: u64,
    /// How often another virtual thread was continued.
    pub switches: u64,
    /// How often threads went to sleep.
    pub parks: u64,
    /// How often sleeping threads were woken.
    pub wakes: u64,
    /// The names of the threads that still slept when the main thread and all others had ended.
    pub left: Vec<String>,
}

/// What cores did, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Split {
    /// Declared work.
    pub work: u64,
    /// Accesses to lines that the core had, and first touches.
    pub hits: u64,
    /// Accesses to lines of other cores.
    pub misses: u64,
    /// Pause instructions.
    pub pauses: u64,
    /// System calls, and interrupts by those of other cores.
    pub system_calls: u64,
    /// Allocations.
    pub allocation: u64,
    /// Reading the clock.
    pub clock: u64,
    /// Nothing.
    pub idle: u64,
}

/// What a place in the source costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SiteReport {
    /// The file and the line.
    pub place: String,
    /// The time that threads spent there.
    pub stall: u64,
    /// The part of it for which they waited for other requests.
    pub queued: u64,
    /// The number of accesses.
    pub operations: u64,
    /// The number of those that fetched the line from another core.
    pub transfers: u64,
}

/// What a cache line costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineReport {
    /// The number of the line, in the order of first use.
    pub number: usize,
    /// The place of the last access that waited for the line.
    pub last_place: String,
    /// The time that threads waited for the line.
    pub stall: u64,
    /// The number of accesses.
    pub operations: u64,
    /// The number of transfers between cores.
    pub transfers: u64,
}

/// When a thread worked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadReport {
    /// The name of the thread.
    pub name: String,
    /// When its first declared work began.
    pub first_work: u64,
    /// When its last declared work ended.
    pub last_work: u64,
}

/// Begins the part of the simulation that the report is about. Without this call it is the whole run.
pub fn begin() {
    kernel::enter(|kernel| kernel.begin_recording());
}

/// Ends the part of the simulation that the report is about.
pub fn end() {
    kernel::enter(|kernel| kernel.end_recording());
}
