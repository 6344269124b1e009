//! How long each operation takes: the constants of the model, and which of them were measured.

use serde::{Deserialize, Serialize};

/// Virtual time in picoseconds. Integers, because sums of floating-point numbers depend on their order.
pub(crate) type Picos = u64;

/// The costs of operations, in nanoseconds. docs/SIMULATION.md says how each was obtained.
///
/// A machine file may set any of them in its table `[costs]`:
///
/// ```
/// let costs: heist_sim::Costs = toml::from_str("load = 0.5").unwrap();
/// assert_eq!(costs.load, 0.5);
/// assert_eq!(costs.fence, heist_sim::Costs::default().fence);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Costs {
    /// The instructions around each access. Fitted to a tree of tasks on one real worker.
    pub instructions: f64,
    /// A load of a line that this core has. Measured.
    pub load: f64,
    /// A store to a line that this core owns. Measured.
    pub store: f64,
    /// A read-modify-write of a line that this core owns. Measured.
    pub rmw: f64,
    /// A full fence with an empty store buffer. Measured.
    pub fence: f64,
    /// A prefetch instruction. Assumed.
    pub prefetch: f64,
    /// The first touch of a line that no cache has. Assumed.
    pub fresh: f64,
    /// The part of a transfer that passes before the request reaches the present owner, which keeps the line until
    /// then. Fitted to a contended `fetch_add`.
    pub request_share: f64,
    /// How long a core keeps a line at least after the read-modify-write for which it fetched the line, while other requests
    /// wait. Fitted to a contended `fetch_add`.
    pub tenure: f64,
    /// The part of a transfer that a read of a clean, shared line takes. Fitted.
    pub shared_read_share: f64,
    /// How long one read keeps other requests for the same line waiting. Assumed.
    pub read_occupancy: f64,
    /// The time to invalidate one sharer, in addition to the transfer. Assumed.
    pub invalidate_each: f64,
    /// How far the stores in the store buffer may lag behind before a store has to wait. Assumed.
    pub store_buffer: f64,
    /// A pause instruction. Measured.
    pub pause: f64,
    /// A system call that yields the processor. Measured.
    pub yield_call: f64,
    /// The system call that puts a thread to sleep. Assumed.
    pub park_call: f64,
    /// The system call that wakes a thread, for the caller. Measured.
    pub wake_call: f64,
    /// The time from the begin of that call until the woken thread runs. Measured.
    pub wake_latency: f64,
    /// The system call that starts a thread, for the caller. Measured.
    pub spawn_call: f64,
    /// The time from the end of that call until the new thread runs. Assumed.
    pub spawn_latency: f64,
    /// A context switch, when threads share a core. Assumed.
    pub switch: f64,
    /// How long a thread runs while others wait for a core. The default of Linux. Assumed.
    pub quantum: f64,
    /// The system call `membarrier`, for the caller. Measured.
    pub membarrier: f64,
    /// What each running core adds to it. Assumed.
    pub membarrier_each: f64,
    /// The time that the interrupt takes on each running core. Assumed.
    pub interrupt: f64,
    /// Reading the clock. Measured.
    pub clock: f64,
    /// An allocation. Measured.
    pub alloc: f64,
    /// Freeing an allocation. Measured.
    pub free: f64,
    /// The random variation of declared work, in parts of a thousand in both directions. Assumed; without it, threads
    /// with equal work would meet at the same lines in step.
    pub jitter_permille: u64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            instructions: 1.0,
            load: 0.27,
            store: 0.15,
            rmw: 2.1,
            fence: 2.0,
            prefetch: 0.3,
            fresh: 40.0,
            request_share: 0.5,
            tenure: 12.0,
            shared_read_share: 0.83,
            read_occupancy: 5.0,
            invalidate_each: 0.5,
            store_buffer: 600.0,
            pause: 25.0,
            yield_call: 500.0,
            park_call: 900.0,
            wake_call: 1_000.0,
            wake_latency: 6_100.0,
            spawn_call: 10_000.0,
            spawn_latency: 10_000.0,
            switch: 1_500.0,
            quantum: 3_000_000.0,
            membarrier: 900.0,
            membarrier_each: 40.0,
            interrupt: 700.0,
            clock: 23.0,
            alloc: 9.0,
            free: 6.0,
            jitter_permille: 20,
        }
    }
}

/// [`Costs`] in the unit of the virtual clock.
#[derive(Clone, Debug)]
pub(crate) struct Ticks {
    pub(crate) instructions: Picos,
    pub(crate) load: Picos,
    pub(crate) store: Picos,
    pub(crate) rmw: Picos,
    pub(crate) fence: Picos,
    pub(crate) prefetch: Picos,
    pub(crate) fresh: Picos,
    pub(crate) request_permille: u64,
    pub(crate) tenure: Picos,
    pub(crate) shared_read_permille: u64,
    pub(crate) read_occupancy: Picos,
    pub(crate) invalidate_each: Picos,
    pub(crate) store_buffer: Picos,
    pub(crate) pause: Picos,
    pub(crate) yield_call: Picos,
    pub(crate) park_call: Picos,
    pub(crate) wake_call: Picos,
    pub(crate) wake_latency: Picos,
    pub(crate) spawn_call: Picos,
    pub(crate) spawn_latency: Picos,
    pub(crate) switch: Picos,
    pub(crate) quantum: Picos,
    pub(crate) membarrier: Picos,
    pub(crate) membarrier_each: Picos,
    pub(crate) interrupt: Picos,
    pub(crate) clock: Picos,
    pub(crate) alloc: Picos,
    pub(crate) free: Picos,
    pub(crate) jitter_permille: u64,
}

/// Converts nanoseconds to the unit of the virtual clock.
pub(crate) fn picos(nanoseconds: f64) -> Picos {
    (nanoseconds * 1_000.0).round() as Picos
}

impl From<&Costs> for Ticks {
    fn from(costs: &Costs) -> Self {
        let permille = |share: f64| (share * 1_000.0).round() as u64;
        Self {
            instructions: picos(costs.instructions),
            load: picos(costs.load),
            store: picos(costs.store),
            rmw: picos(costs.rmw),
            fence: picos(costs.fence),
            prefetch: picos(costs.prefetch),
            fresh: picos(costs.fresh),
            request_permille: permille(costs.request_share),
            tenure: picos(costs.tenure),
            shared_read_permille: permille(costs.shared_read_share),
            read_occupancy: picos(costs.read_occupancy),
            invalidate_each: picos(costs.invalidate_each),
            store_buffer: picos(costs.store_buffer),
            pause: picos(costs.pause),
            yield_call: picos(costs.yield_call),
            park_call: picos(costs.park_call),
            wake_call: picos(costs.wake_call),
            wake_latency: picos(costs.wake_latency),
            spawn_call: picos(costs.spawn_call),
            spawn_latency: picos(costs.spawn_latency),
            switch: picos(costs.switch),
            quantum: picos(costs.quantum),
            membarrier: picos(costs.membarrier),
            membarrier_each: picos(costs.membarrier_each),
            interrupt: picos(costs.interrupt),
            clock: picos(costs.clock),
            alloc: picos(costs.alloc),
            free: picos(costs.free),
            jitter_permille: costs.jitter_permille,
        }
    }
}
