//! When virtual threads get a core, lose it, sleep and wake up.

use std::cmp::Reverse;

use crate::core_set::Core;
use crate::cores::ThreadId;
use crate::costs::Picos;
use crate::error::WaitsFor;
use crate::kernel::{Exit, Kernel, State, enter, suspend, take_turn};
use crate::report::Activity;

impl Kernel {
    /// Gives a core to a thread that can continue at `at`, or makes it wait for one.
    pub(crate) fn make_ready(&mut self, id: ThreadId, at: Picos) {
        let thread = &mut self.threads[id as usize];
        thread.turn += 1;
        thread.clock = thread.clock.max(at);
        let pinned = thread.pinned;
        let core = match pinned {
            Some(core) => self.clear(core).then_some(core),
            None => self.cores.choose(thread.core, &self.topology),
        };
        match core {
            Some(core) => self.run_on(core, id),
            None => {
                self.threads[id as usize].state = State::Ready;
                self.cores.wait(id, pinned);
            }
        }
    }

    /// Returns whether a core is free for a thread that is pinned to it. If not, and the thread that runs there is not
    /// pinned, then that one has to make room: it can run elsewhere. Two threads that are pinned to the same core take
    /// turns.
    fn clear(&mut self, core: Core) -> bool {
        let Some(other) = self.cores.running(core) else { return true };
        let other = &mut self.threads[other as usize];
        other.is_expired = other.pinned.is_none();
        false
    }

    fn run_on(&mut self, core: Core, id: ThreadId) {
        self.cores.occupy(core, id);
        let thread = &mut self.threads[id as usize];
        thread.core = core;
        thread.state = State::Running;
        thread.since = thread.clock;
        thread.is_expired = false;
        self.next.push(Reverse((thread.clock, id, thread.turn)));
        // The current thread must let it run in time.
        self.horizon = self.horizon.min(thread.clock + crate::kernel::SLACK);
    }

    /// Frees a core, and gives it to a thread that waits for one.
    pub(crate) fn vacate(&mut self, core: Core, at: Picos) {
        self.cores.vacate(core);
        if let Some(id) = self.cores.next_for(core) {
            let thread = &mut self.threads[id as usize];
            thread.clock = thread.clock.max(at) + self.ticks.switch;
            thread.turn += 1;
            self.run_on(core, id);
        }
    }

    /// Gives the core of the current thread to one that waits for it. The current thread has to stop: it moves to a free
    /// core, or waits for one.
    pub(crate) fn preempt(&mut self) -> Exit {
        let id = self.current;
        let thread = self.thread();
        let (core, at, exit) = (thread.core, thread.clock, thread.exit);
        self.vacate(core, at);
        let switch = self.ticks.switch;
        self.make_ready(id, at + switch);
        exit
    }

    /// Puts the current thread to sleep, until `until` at the latest. It has to stop.
    pub(crate) fn block(&mut self, waits_for: WaitsFor, until: Option<Picos>) -> Exit {
        let id = self.current;
        let thread = self.thread();
        thread.state = State::Blocked(waits_for);
        thread.turn += 1;
        let (core, at, turn, exit) = (thread.core, thread.clock, thread.turn, thread.exit);
        self.recorder.parks += 1;
        self.vacate(core, at);
        if let Some(until) = until {
            self.next.push(Reverse((until, id, turn)));
        }
        exit
    }

    /// Charges the call that wakes a thread, and wakes it.
    pub(crate) fn wake(&mut self, id: ThreadId) {
        let at = self.now() + self.ticks.wake_latency;
        let call = self.ticks.wake_call;
        self.spend(Activity::SystemCall, call);
        self.recorder.wakes += 1;
        self.make_ready(id, at);
    }

    /// Moves the current thread to a core, and keeps it there. It has to stop if it is not there yet.
    pub(crate) fn pin(&mut self, core: Core) -> Option<Exit> {
        self.cores.reserve(core);
        let id = self.current;
        let thread = self.thread();
        thread.pinned = Some(core);
        if thread.core == core {
            return None;
        }
        let (old, at, exit) = (thread.core, thread.clock, thread.exit);
        self.vacate(old, at);
        self.make_ready(id, at);
        Some(exit)
    }
}

/// Offers the core to threads that wait for one.
pub fn yield_now() {
    crate::kernel::spend(Activity::SystemCall, |ticks| ticks.yield_call);
    take_turn();
    let exit = enter(|kernel| {
        let core = kernel.thread().core;
        kernel.cores.is_wanted(core).then(|| kernel.preempt())
    });
    if let Some(Some(exit)) = exit {
        suspend(exit);
    }
}
