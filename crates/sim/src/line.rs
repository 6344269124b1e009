//! The model of cache lines: which core owns a line, which share it, and how long an access takes.
//!
//! A line is in one of three states: no core has it, cores share it for reading, or one core owns it. A request of another
//! core takes a *transfer*, of which the first part (`request_share`) is the way to the present owner. The owner keeps
//! the line until then, and for at least `tenure` after the read-modify-write for which it fetched the line. This is the bias to
//! the owner that real machines show: several operations of one core are done between two transfers, and a request that
//! has had to wait has its way behind it. A line serves one transfer at a time, in the order of the requests.

use crate::core_set::{Core, CoreSet};
use crate::costs::{Picos, Ticks};
use crate::report::SiteId;
use crate::store_buffer::StoreBuffer;
use crate::topology::Topology;

/// What an access does with its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Load,
    Store,
    /// A read-modify-write, also of a value that does not change.
    Update,
}

/// A cache line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The core that may write.
    owner: Option<Core>,
    /// The cores that may read. Empty while there is an owner.
    sharers: CoreSet,
    /// No other request is served before this time.
    busy: Picos,
    /// The present owner keeps the line until then if other requests wait.
    keep: Picos,
    /// When the line arrives that a prefetch has asked for.
    arrives: Picos,
    /// The core that owned the line before, and until when it still has it.
    leaving: Option<(Core, Picos)>,
    pub(crate) use_count: LineUse,
}

/// How a line was used, for the report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineUse {
    pub(crate) operations: u64,
    pub(crate) transfers: u64,
    pub(crate) stall: Picos,
    /// The last place in the source that had to wait for the line.
    pub(crate) site: Option<SiteId>,
}

impl Line {
    pub(crate) const NEW: Self = Self {
        owner: None,
        sharers: CoreSet::EMPTY,
        busy: 0,
        keep: 0,
        arrives: 0,
        leaving: None,
        use_count: LineUse { operations: 0, transfers: 0, stall: 0, site: None },
    };
}

/// How an access went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// When the core goes on.
    pub(crate) end: Picos,
    /// Whether the line came from another core's cache.
    pub(crate) is_transfer: bool,
    /// The time for which the request waited for other requests.
    pub(crate) queued: Picos,
}

/// Everything that an access needs to know besides the line.
pub(crate) struct Context<'a> {
    pub(crate) ticks: &'a Ticks,
    pub(crate) topology: &'a Topology,
    pub(crate) core: Core,
    pub(crate) now: Picos,
    pub(crate) buffer: &'a mut StoreBuffer,
}

impl Line {
    /// Performs an access, and returns how long it takes.
    #[inline]
    pub(crate) fn access(&mut self, access: Access, context: &mut Context<'_>) -> Outcome {
        context.now = context.now.max(self.arrives);
        match access {
            Access::Load => self.load(context),
            Access::Store => self.store(context),
            Access::Update => self.update(context),
        }
    }

    /// Fetches the line while the core goes on. An access that comes before the line has arrived waits for it.
    pub(crate) fn prefetch(&mut self, access: Access, context: &mut Context<'_>) {
        let outcome = match access {
            Access::Load => self.load(context),
            // Unlike a store, it is not in the order of the store buffer.
            Access::Store | Access::Update => self.update(&mut Context {
                ticks: context.ticks,
                topology: context.topology,
                core: context.core,
                now: context.now,
                buffer: &mut StoreBuffer::default(),
            }),
        };
        if outcome.is_transfer {
            self.arrives = outcome.end;
        }
    }

    /// Returns whether the core owns the line at that time, as the present owner or because another core's request has
    /// not reached it yet.
    #[inline]
    fn is_owned(&self, core: Core, now: Picos) -> bool {
        self.owner == Some(core)
            || self.leaving.is_some_and(|(leaving, until)| leaving == core && now < until)
    }

    #[inline]
    fn load(&mut self, context: &mut Context<'_>) -> Outcome {
        let (core, now, ticks) = (context.core, context.now, context.ticks);
        if self.is_owned(core, now) || self.sharers.contains(core) {
            return Outcome { end: now + ticks.load, is_transfer: false, queued: 0 };
        }
        let Some(owner) = self.owner else { return self.load_shared(context) };
        let transfer = context.topology.transfer(owner, core);
        let (granted, queued) = self.grant(now, transfer, ticks);
        let arrived = granted + after_request(transfer, ticks);
        self.owner = None;
        self.leaving = None;
        self.sharers = [owner, core].into_iter().collect();
        self.busy = arrived;
        Outcome { end: arrived + ticks.load, is_transfer: true, queued }
    }

    /// Loads a line that nobody owns.
    fn load_shared(&mut self, context: &Context<'_>) -> Outcome {
        let (core, now, ticks) = (context.core, context.now, context.ticks);
        let is_fresh = self.sharers.is_empty();
        let start = now.max(self.busy);
        let time = if is_fresh {
            ticks.fresh
        } else {
            self.busy = start + ticks.read_occupancy;
            context.topology.nearest(&self.sharers, core) * ticks.shared_read_permille / 1_000
        };
        self.sharers.insert(core);
        Outcome { end: start + time + ticks.load, is_transfer: !is_fresh, queued: start - now }
    }

    #[inline]
    fn update(&mut self, context: &mut Context<'_>) -> Outcome {
        let now = context.buffer.flush(context.now);
        let ticks = context.ticks;
        if self.is_owned(context.core, now) {
            return Outcome { end: now + ticks.rmw, is_transfer: false, queued: 0 };
        }
        let (arrived, is_transfer, queued) = self.fetch(now, context);
        let end = arrived + ticks.rmw;
        self.busy = end;
        self.keep = end + ticks.tenure;
        Outcome { end, is_transfer, queued }
    }

    #[inline]
    fn store(&mut self, context: &mut Context<'_>) -> Outcome {
        let (now, ticks) = (context.now, context.ticks);
        if self.is_owned(context.core, now) {
            return Outcome { end: now + ticks.store, is_transfer: false, queued: 0 };
        }
        // The store buffer hides the transfer, until it is full.
        let (arrived, is_transfer, queued) = self.fetch(context.buffer.next(now), context);
        self.busy = arrived;
        self.keep = arrived;
        let end = context.buffer.push(now, arrived, ticks.store_buffer) + ticks.store;
        Outcome { end, is_transfer, queued }
    }

    /// Makes the core the owner. Returns when the line arrives, whether from another core, and the time in the queue.
    fn fetch(&mut self, now: Picos, context: &Context<'_>) -> (Picos, bool, Picos) {
        let (core, ticks, topology) = (context.core, context.ticks, context.topology);
        let (arrived, is_transfer, queued);
        if let Some(owner) = self.owner {
            let transfer = topology.transfer(owner, core);
            let granted;
            (granted, queued) = self.grant(now, transfer, ticks);
            arrived = granted + after_request(transfer, ticks);
            is_transfer = true;
            self.leaving = Some((owner, granted));
        } else {
            let start = now.max(self.busy);
            queued = start - now;
            is_transfer = !self.sharers.is_empty() && !self.sharers.is_only(core);
            arrived = start
                + if self.sharers.is_only(core) {
                    ticks.store
                } else if is_transfer {
                    topology.farthest(&self.sharers, core)
                        + self.sharers.len() * ticks.invalidate_each
                } else {
                    ticks.fresh
                };
            self.leaving = None;
        }
        self.owner = Some(core);
        self.sharers = CoreSet::EMPTY;
        (arrived, is_transfer, queued)
    }

    /// Returns when the owner gives the line away to a request that is made now, and for how long that request waits for
    /// others.
    fn grant(&self, now: Picos, transfer: Picos, ticks: &Ticks) -> (Picos, Picos) {
        let request = now + transfer * ticks.request_permille / 1_000;
        // Only a line that others wait for is kept: it was on its way when the request was made.
        let free = if self.busy > now { self.keep } else { self.busy };
        let granted = request.max(free);
        (granted, granted - request)
    }
}

/// Returns the part of a transfer after the request has reached the owner.
fn after_request(transfer: Picos, ticks: &Ticks) -> Picos {
    transfer - transfer * ticks.request_permille / 1_000
}

#[cfg(test)]
mod tests;
