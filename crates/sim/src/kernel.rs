//! The state of a simulation, and in which order virtual threads access memory.
//!
//! Each virtual thread has a clock of its own, and goes on for as long as its clock is not ahead of the others' by more
//! than [`SLACK`]. Then the thread with the smallest clock continues. An access to shared memory is where a thread may
//! have to stop; what it does by itself only advances its clock.

use std::any::Any;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};

use crate::alloc::KernelMode;
use crate::core_set::Core;
use crate::cores::{Cores, ThreadId};
use crate::costs::{Picos, Ticks};
use crate::directory::{Directory, LINE_BITS};
use crate::error::WaitsFor;
use crate::line::{Access, Context};
use crate::random::Random;
use crate::report::{Activity, Recorder, SiteId};
use crate::store_buffer::StoreBuffer;
use crate::topology::Topology;

/// How far a thread may be ahead of the others before they continue, in picoseconds.
///
/// It is less than a transfer between two cores takes, so that no thread can have heard of what another did meanwhile.
/// Measured on trees of 8 to 128 workers: simulations are two to three times as fast as without slack. Efficiencies differ
/// by at most 0.02, and by 0.06 for joins on 128 cores, where two seeds differ by 0.04.
pub(crate) const SLACK: Picos = 20_000;

/// The way out of a coroutine. It is on the stack of that coroutine.
pub(crate) type Exit = *const Yielder<(), ()>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has a core.
    Running,
    /// It waits for a core.
    Ready,
    Blocked(WaitsFor),
    Ended,
}

/// A virtual thread.
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) clock: Picos,
    /// The core on which it runs, or ran last.
    pub(crate) core: Core,
    pub(crate) pinned: Option<Core>,
    /// Distinguishes the present entry of this thread in `Kernel::next` from older ones.
    pub(crate) turn: u64,
    /// When it got its core.
    pub(crate) since: Picos,
    /// Whether it has to give its core away before its time is over.
    pub(crate) is_expired: bool,
    /// Whether it was unparked and has not parked since.
    pub(crate) token: bool,
    /// Time that interrupts have taken, and that its clock does not contain yet.
    pub(crate) interrupted: Picos,
    pub(crate) buffer: StoreBuffer,
    pub(crate) random: Random,
    /// The begin of its first declared work and the end of its last one.
    pub(crate) worked: Option<(Picos, Picos)>,
    /// The thread-locals that it has used, in the order of first use. `None` was destroyed.
    pub(crate) locals: Vec<(usize, Option<Rc<dyn Any>>)>,
    pub(crate) joiners: Vec<ThreadId>,
    /// Set by the coroutine itself.
    pub(crate) exit: Exit,
    /// Missing while it runs and after its end.
    pub(crate) coroutine: Option<Coroutine<(), (), ()>>,
}

pub(crate) struct Kernel {
    pub(crate) ticks: Ticks,
    pub(crate) topology: Topology,
    pub(crate) seed: u64,
    pub(crate) threads: Vec<Thread>,
    pub(crate) current: ThreadId,
    /// The times at which threads continue or wake up, with the turn that makes the entry valid.
    pub(crate) next: BinaryHeap<Reverse<(Picos, ThreadId, u64)>>,
    /// The current thread may not get further ahead than this.
    pub(crate) horizon: Picos,
    pub(crate) cores: Cores,
    pub(crate) directory: Directory,
    /// The threads that sleep until a word changes, by its address.
    pub(crate) sleepers: HashMap<usize, VecDeque<ThreadId>>,
    pub(crate) recorder: Recorder,
    pub(crate) free_stacks: Vec<DefaultStack>,
}

thread_local! {
    /// The simulation that runs on this thread of the operating system.
    pub(crate) static KERNEL: RefCell<Option<Box<Kernel>>> = const { RefCell::new(None) };
}

/// Calls `f` with the simulation that the calling code is in. Returns `None` outside of one.
#[inline]
pub(crate) fn enter<R>(f: impl FnOnce(&mut Kernel) -> R) -> Option<R> {
    let call = |kernel: &RefCell<Option<Box<Kernel>>>| {
        let mut kernel = kernel.borrow_mut();
        let kernel = kernel.as_mut()?;
        let _mode = KernelMode::enter();
        Some(f(kernel))
    };
    // A thread of the operating system that ends has no simulation any more.
    KERNEL.try_with(call).ok().flatten()
}

/// Stops the calling virtual thread until the scheduler continues it.
pub(crate) fn suspend(exit: Exit) {
    // SAFETY: `exit` is on the stack of the calling coroutine, which is alive while it runs.
    let exit = unsafe { &*exit };
    exit.suspend(());
}

/// Waits until it is the calling thread's turn to do something that others can see.
pub(crate) fn take_turn() {
    if let Some(Some(exit)) = enter(Kernel::must_wait) {
        suspend(exit);
    }
}

/// Charges an access to memory that threads share.
#[inline]
pub(crate) fn access(address: usize, size: usize, access: Access, site: SiteId) {
    let exit = enter(|kernel| {
        let exit = kernel.must_wait();
        if exit.is_none() {
            kernel.touch(address, size, access, site);
        }
        exit
    });
    if let Some(Some(exit)) = exit {
        suspend(exit);
        enter(|kernel| kernel.touch(address, size, access, site));
    }
}

/// Charges time that the calling thread spends by itself.
pub(crate) fn spend(activity: Activity, time: impl FnOnce(&Ticks) -> Picos) {
    enter(|kernel| {
        let time = time(&kernel.ticks);
        kernel.spend(activity, time);
    });
}

impl Kernel {
    #[inline]
    pub(crate) fn thread(&mut self) -> &mut Thread {
        &mut self.threads[self.current as usize]
    }

    pub(crate) fn now(&self) -> Picos {
        self.threads[self.current as usize].clock
    }

    pub(crate) fn spend(&mut self, activity: Activity, time: Picos) {
        self.thread().clock += time;
        self.recorder.spend(activity, time);
    }

    /// Returns whether the current thread must stop, and how. It is registered to continue in that case.
    #[inline]
    fn must_wait(&mut self) -> Option<Exit> {
        let (id, horizon) = (self.current, self.horizon);
        let thread = &mut self.threads[id as usize];
        if thread.interrupted > 0 {
            let time = std::mem::take(&mut thread.interrupted);
            thread.clock += time;
            self.recorder.spend(Activity::SystemCall, time);
        }
        let is_over = thread.is_expired || thread.clock > thread.since + self.ticks.quantum;
        if is_over && self.cores.is_wanted(thread.core) {
            return Some(self.preempt());
        }
        if thread.clock <= horizon {
            return None;
        }
        self.next.push(Reverse((thread.clock, id, thread.turn)));
        Some(thread.exit)
    }

    /// Accesses all lines of a range of addresses.
    #[inline]
    fn touch(&mut self, address: usize, size: usize, access: Access, site: SiteId) {
        if size == 0 {
            return;
        }
        let instructions = self.ticks.instructions;
        self.spend(Activity::Hit, instructions);
        for number in address >> LINE_BITS..=(address + size - 1) >> LINE_BITS {
            self.touch_line(number, access, site);
        }
    }

    fn touch_line(&mut self, number: usize, access: Access, site: SiteId) {
        let thread = &mut self.threads[self.current as usize];
        let line = self.directory.line(number);
        let now = thread.clock;
        let outcome = line.access(
            access,
            &mut Context {
                ticks: &self.ticks,
                topology: &self.topology,
                core: thread.core,
                now,
                buffer: &mut thread.buffer,
            },
        );
        thread.clock = outcome.end;
        if self.recorder.is_on() {
            let stall = outcome.end - now;
            line.use_count.operations += 1;
            if outcome.is_transfer {
                line.use_count.transfers += 1;
                line.use_count.stall += stall;
                line.use_count.site = Some(site);
            }
            self.recorder.access(site, &outcome, stall);
        }
    }

    /// Fetches a line while the thread goes on.
    pub(crate) fn prefetch(&mut self, address: usize, access: Access) {
        let time = self.ticks.prefetch;
        let thread = &mut self.threads[self.current as usize];
        self.directory.line(address >> LINE_BITS).prefetch(
            access,
            &mut Context {
                ticks: &self.ticks,
                topology: &self.topology,
                core: thread.core,
                now: thread.clock,
                buffer: &mut thread.buffer,
            },
        );
        self.spend(Activity::Hit, time);
    }

    /// Waits until all stores are done.
    pub(crate) fn fence(&mut self) {
        let fence = self.ticks.fence;
        let thread = self.thread();
        let time = thread.buffer.flush(thread.clock) - thread.clock + fence;
        self.spend(Activity::Hit, time);
    }

    /// Makes all running cores pass a fence, and waits for them.
    pub(crate) fn membarrier(&mut self) {
        let mut others = 0;
        for id in self.cores.all_running().filter(|&id| id != self.current).collect::<Vec<_>>() {
            self.threads[id as usize].interrupted += self.ticks.interrupt;
            others += 1;
        }
        let call = self.ticks.membarrier + others * self.ticks.membarrier_each;
        let thread = self.thread();
        let time = thread.buffer.flush(thread.clock) - thread.clock + call;
        self.spend(Activity::SystemCall, time);
    }

    /// Charges declared work, with a random variation.
    pub(crate) fn work(&mut self, time: Picos) {
        let jitter = self.ticks.jitter_permille;
        let is_recorded = self.recorder.is_on();
        let thread = self.thread();
        let time = match jitter {
            0 => time,
            _ => time * (1_000 - jitter + thread.random.next() % (2 * jitter + 1)) / 1_000,
        };
        if is_recorded {
            let start = thread.clock;
            let worked = thread.worked.get_or_insert((start, start));
            worked.1 = start + time;
        }
        self.spend(Activity::Work, time);
    }

    pub(crate) fn begin_recording(&mut self) {
        let now = self.now();
        self.recorder.begin(now);
        self.directory.forget_uses();
        self.threads.iter_mut().for_each(|thread| thread.worked = None);
    }

    pub(crate) fn end_recording(&mut self) {
        let now = self.now();
        self.recorder.end(now);
    }
}
