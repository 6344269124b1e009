//! Virtual threads: starting, joining, parking and pinning them.

use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::core_set::Core;
use crate::cores::ThreadId;
use crate::costs::Picos;
use crate::directory::LINE_BITS;
use crate::error::WaitsFor;
use crate::kernel::{self, Kernel, State, enter, suspend, take_turn};
use crate::line::Access;
use crate::report::Activity;
use crate::time::{Instant, picos};

pub use crate::schedule::yield_now;

/// The stack size of threads for which none was set, as in `std`.
const STACK: usize = 2 << 20;

/// Settings of a new virtual thread, as `std::thread::Builder`.
#[derive(Debug, Default)]
pub struct Builder {
    name: String,
    stack_size: Option<usize>,
}

impl Builder {
    /// Returns the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name.
    pub fn name(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// Sets the size of the stack in bytes. It is rounded up if it is too small for a panic.
    pub fn stack_size(self, bytes: usize) -> Self {
        Self { stack_size: Some(bytes), ..self }
    }

    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// Never returns an error.
    ///
    /// # Panics
    ///
    /// Panics outside of a simulation.
    pub fn spawn<T: Send + 'static>(
        self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let result = Arc::new(Mutex::new(None));
        let of_thread = Arc::clone(&result);
        let body = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(f));
            *of_thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        });
        take_turn();
        let stack_size = self.stack_size.unwrap_or(STACK);
        let started = enter(|kernel| {
            let call = kernel.ticks.spawn_call;
            kernel.spend(Activity::SystemCall, call);
            let at = kernel.now() + kernel.ticks.spawn_latency;
            kernel.spawn(at, stack_size, self.name, body)
        });
        let id = started.expect("a virtual thread is started by a virtual thread");
        Ok(JoinHandle { thread: Thread(id), result })
    }
}

/// Starts a virtual thread.
///
/// # Panics
///
/// Panics outside of a simulation.
pub fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn(f).expect("never refused")
}

/// A handle to wait for the end of a virtual thread. If it is dropped, the thread goes on.
#[derive(Debug)]
pub struct JoinHandle<T> {
    thread: Thread,
    result: Arc<Mutex<Option<std::thread::Result<T>>>>,
}

impl<T> JoinHandle<T> {
    /// Returns the thread.
    pub fn thread(&self) -> Thread {
        self.thread
    }

    /// Returns whether [`join`](Self::join) would not wait.
    pub fn is_finished(&self) -> bool {
        take_turn();
        enter(|kernel| kernel.has_ended(self.thread.0)).unwrap_or(true)
    }

    /// Waits for the end of the thread. Returns its result, or the payload of its panic.
    ///
    /// # Errors
    ///
    /// Returns the payload if the thread has panicked.
    ///
    /// # Panics
    ///
    /// Panics outside of a simulation.
    pub fn join(self) -> std::thread::Result<T> {
        take_turn();
        let exit = enter(|kernel| {
            let id = self.thread.0;
            if kernel.has_ended(id) {
                return None;
            }
            let current = kernel.current;
            kernel.threads[id as usize].joiners.push(current);
            Some(kernel.block(WaitsFor::Join, None))
        });
        if let Some(exit) = exit.expect("a virtual thread is joined by a virtual thread") {
            suspend(exit);
        }
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.expect("a thread stores its result before it ends")
    }
}

/// A virtual thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(ThreadId);

impl Thread {
    /// Makes the next or present [`park`] of the thread return.
    ///
    /// # Panics
    ///
    /// Panics outside of a simulation.
    #[track_caller]
    pub fn unpark(&self) {
        kernel::access(self.parker(), size_of::<u32>(), Access::Update, Location::caller());
        let woken = enter(|kernel| {
            let thread = &mut kernel.threads[self.0 as usize];
            thread.token = true;
            if thread.state == State::Blocked(WaitsFor::Unpark) {
                kernel.wake(self.0);
            }
        });
        woken.expect("a virtual thread is unparked by a virtual thread");
    }

    /// Returns an address that stands for the word with which the thread parks. It is above all addresses that programs
    /// have, and no two threads' words share a line.
    fn parker(&self) -> usize {
        usize::MAX - ((self.0 as usize + 1) << (LINE_BITS + 1)) + 1
    }
}

/// Returns the calling thread.
///
/// # Panics
///
/// Panics outside of a simulation.
pub fn current() -> Thread {
    Thread(enter(|kernel| kernel.current).expect("called by a virtual thread"))
}

/// Returns the name of the calling thread, which may be empty.
pub fn name() -> String {
    enter(|kernel| kernel.thread().name.clone()).unwrap_or_default()
}

/// Sleeps until [`Thread::unpark`], which may have come before.
///
/// # Panics
///
/// Panics outside of a simulation.
#[track_caller]
pub fn park() {
    park_until(Location::caller(), |_| None);
}

/// Sleeps until [`Thread::unpark`], but not longer than `limit`.
///
/// # Panics
///
/// Panics outside of a simulation.
#[track_caller]
pub fn park_timeout(limit: Duration) {
    park_until(Location::caller(), |now| Some(now.saturating_add(picos(limit))));
}

/// Sleeps for a time.
///
/// # Panics
///
/// Panics outside of a simulation.
pub fn sleep(time: Duration) {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        park_timeout(left);
    }
}

fn park_until(site: &'static Location<'static>, until: impl FnOnce(Picos) -> Option<Picos>) {
    let me = current();
    let take_token = |kernel: &mut Kernel| std::mem::take(&mut kernel.thread().token);
    kernel::access(me.parker(), size_of::<u32>(), Access::Update, site);
    if enter(take_token) == Some(true) {
        return;
    }
    kernel::spend(Activity::SystemCall, |ticks| ticks.park_call);
    // Another thread may unpark this one during the system call, which looks again.
    take_turn();
    let exit = enter(|kernel| {
        if take_token(kernel) {
            return None;
        }
        let until = until(kernel.now());
        Some(kernel.block(WaitsFor::Unpark, until))
    });
    if let Some(Some(exit)) = exit {
        suspend(exit);
        enter(take_token);
    }
}

/// Moves the calling thread to this core, modulo the number of cores, and keeps it there. Threads that are not pinned avoid
/// the core.
///
/// # Panics
///
/// Panics outside of a simulation.
pub fn pin(core: usize) {
    take_turn();
    let exit = enter(|kernel| kernel.pin((core % kernel.cores.count()) as Core));
    if let Some(exit) = exit.expect("a virtual thread is pinned by itself") {
        suspend(exit);
    }
}

/// Returns the core on which the calling thread runs.
///
/// # Panics
///
/// Panics outside of a simulation.
pub fn core() -> usize {
    usize::from(enter(|kernel| kernel.thread().core).expect("called by a virtual thread"))
}

/// Returns the number of cores, as `std::thread::available_parallelism`; one outside of a simulation.
pub fn parallelism() -> usize {
    enter(|kernel| kernel.cores.count()).unwrap_or(1)
}

/// Returns the NUMA node of the core on which the calling thread runs; zero outside of a simulation.
pub fn node() -> usize {
    let of_core = |kernel: &mut Kernel| {
        let core = kernel.thread().core;
        kernel.topology.node(core)
    };
    enter(of_core).unwrap_or(0)
}

/// The number of a NUMA node, its cores, and its distance to each node. As in the tables of real machines, the distance of a
/// node to itself is 10.
pub type Node = (usize, Vec<usize>, Vec<u64>);

/// Returns the NUMA nodes of the machine, or `None` outside of a simulation.
pub fn nodes() -> Option<Vec<Node>> {
    enter(|kernel| kernel.topology.nodes())
}

/// Returns how many cores share a cache, if the machine has such clusters.
pub fn cores_of_a_cache() -> Option<usize> {
    enter(|kernel| kernel.topology.cores_of_a_cache())?
}

impl Kernel {
    fn has_ended(&self, id: ThreadId) -> bool {
        self.threads[id as usize].state == State::Ended
    }
}
