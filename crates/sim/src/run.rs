//! Runs a simulation: continues one virtual thread after the other until all have ended.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use crate::alloc::{Arena, UserMode};
use crate::cores::{Cores, ThreadId};
use crate::costs::{Picos, Ticks};
use crate::directory::Directory;
use crate::error::{Blocked, RunError, WaitsFor};
use crate::kernel::{Exit, KERNEL, Kernel, SLACK, State, Thread, enter};
use crate::local;
use crate::machine::Machine;
use crate::random::Random;
use crate::report::{Recorder, Report};
use crate::store_buffer::StoreBuffer;
use crate::topology::Topology;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Config {
    /// The machine.
    pub machine: Machine,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The virtual time after which the simulation is given up.
    pub time_limit: Duration,
}

impl Config {
    /// Returns a configuration with this machine, seed 1, and a limit of a minute.
    pub fn new(machine: Machine) -> Self {
        Self { machine, seed: 1, time_limit: Duration::from_secs(60) }
    }
}

/// Held during a simulation. Statics of the simulated code are shared by all simulations of a process, and a virtual lock
/// cannot make a thread of the operating system wait.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The size of the main thread's stack, that of Linux.
const MAIN_STACK: usize = 8 << 20;

/// The range of the sizes of stacks. The lower limit leaves room for panics.
const STACK: std::ops::RangeInclusive<usize> = 128 << 10..=64 << 20;

/// Runs `main` on the first virtual core of a machine. Returns when it and all threads that it has started have ended, or
/// sleep for ever after the end of `main`. Simulations of a process take place one after the other.
///
/// ```
/// use heist_sim::{Config, Machine, thread};
///
/// let (sum, report) = heist_sim::run(Config::new(Machine::generic(2)), || {
///     let other = thread::spawn(|| {
///         heist_sim::work(500);
///         1
///     });
///     heist_sim::work(500);
///     1 + other.join().unwrap()
/// })?;
/// assert_eq!(sum, 2);
/// assert!(report.split.work > 900);
/// # Ok::<(), heist_sim::RunError>(())
/// ```
///
/// # Errors
///
/// Returns an error if the machine cannot be simulated, for a deadlock, and when the time limit is exceeded.
///
/// # Panics
///
/// A panic of `main` reaches the caller. It also panics if it is called inside of a simulation, or if the system grants no
/// memory for a stack.
pub fn run<R: 'static>(
    config: Config,
    main: impl FnOnce() -> R + 'static,
) -> Result<(R, Report), RunError> {
    config.machine.check()?;
    assert!(enter(|_| ()).is_none(), "a simulation inside of a simulation");
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let result = Rc::new(RefCell::new(None));
    let of_main = Rc::clone(&result);
    let arena = Arena::open();
    let time_limit = config.time_limit.as_nanos() as u64 * 1_000;
    let mut kernel = Box::new(Kernel::new(config));
    kernel.recorder.begin(0);
    let body = move || *of_main.borrow_mut() = Some(catch_unwind(AssertUnwindSafe(main)));
    kernel.spawn(0, MAIN_STACK, "main".into(), Box::new(body));
    KERNEL.set(Some(kernel));
    let ended = schedule(time_limit);
    let kernel = KERNEL.take().expect("set above");
    let report = kernel.report();
    // Names of threads are in the arena.
    kernel.leak();
    drop(arena);
    ended?;
    match result.take().expect("the main thread has ended") {
        Ok(value) => Ok((value, report)),
        Err(payload) => resume_unwind(payload),
    }
}

/// What the scheduler does next.
enum Step {
    Continue(ThreadId, Coroutine<(), (), ()>),
    /// No thread can continue, now or later.
    Over,
    TimeLimit,
}

fn schedule(limit: Picos) -> Result<(), RunError> {
    loop {
        match enter(|kernel| kernel.step(limit)).expect("within a simulation") {
            Step::Continue(id, mut coroutine) => {
                let result = {
                    let _mode = UserMode::enter();
                    coroutine.resume(())
                };
                enter(|kernel| match result {
                    CoroutineResult::Yield(()) => {
                        kernel.threads[id as usize].coroutine = Some(coroutine);
                    }
                    CoroutineResult::Return(()) => kernel.finish(id, coroutine.into_stack()),
                });
            }
            Step::Over => return enter(|kernel| kernel.check_deadlock()).expect("as above"),
            Step::TimeLimit => return Err(RunError::TimeLimit { limit: limit / 1_000 }),
        }
    }
}

impl Kernel {
    fn new(config: Config) -> Self {
        let topology = Topology::new(&config.machine);
        Self {
            ticks: Ticks::from(&config.machine.costs),
            seed: config.seed,
            threads: Vec::new(),
            current: 0,
            next: BinaryHeap::new(),
            horizon: 0,
            cores: Cores::new(topology.cores()),
            topology,
            directory: Directory::default(),
            sleepers: HashMap::new(),
            recorder: Recorder::default(),
            free_stacks: Vec::new(),
        }
    }

    /// Makes a thread that starts at `at`.
    pub(crate) fn spawn(
        &mut self,
        at: Picos,
        stack_size: usize,
        name: String,
        body: Box<dyn FnOnce()>,
    ) -> ThreadId {
        let id = self.threads.len() as ThreadId;
        // Near the thread that starts it, if no other core is better.
        let core = self.threads.get(self.current as usize).map_or(0, |thread| thread.core);
        let coroutine = Coroutine::with_stack(self.stack(stack_size), move |exit, ()| {
            let exit: Exit = exit;
            enter(|kernel| kernel.thread().exit = exit);
            body();
            local::destroy_all();
        });
        self.threads.push(Thread {
            name,
            state: State::Ready,
            clock: at,
            core,
            pinned: None,
            turn: 0,
            since: at,
            is_expired: false,
            token: false,
            interrupted: 0,
            buffer: StoreBuffer::default(),
            random: Random::stream(self.seed, u64::from(id)),
            worked: None,
            locals: Vec::new(),
            joiners: Vec::new(),
            exit: std::ptr::null(),
            coroutine: Some(coroutine),
        });
        self.make_ready(id, at);
        id
    }

    /// Returns a stack: one that is free, so that addresses are used again in the same order in every run.
    fn stack(&mut self, size: usize) -> DefaultStack {
        let size = size.clamp(*STACK.start(), *STACK.end());
        let fits = |stack: &DefaultStack| {
            let bytes = corosensei::stack::Stack::base(stack).get()
                - corosensei::stack::Stack::limit(stack).get();
            (size..2 * size).contains(&bytes)
        };
        match self.free_stacks.iter().rposition(fits) {
            Some(position) => self.free_stacks.swap_remove(position),
            None => DefaultStack::new(size).expect("memory for the stack of a virtual thread"),
        }
    }

    /// Returns the thread with the smallest clock.
    fn step(&mut self, limit: Picos) -> Step {
        while let Some(Reverse((at, id, turn))) = self.next.pop() {
            let thread = &mut self.threads[id as usize];
            if thread.turn != turn {
                continue;
            }
            if at > limit {
                return Step::TimeLimit;
            }
            if matches!(thread.state, State::Blocked(_)) {
                // Its sleep was limited.
                self.make_ready(id, at);
                continue;
            }
            self.current = id;
            self.horizon = self.next.peek().map_or(Picos::MAX, |Reverse((next, ..))| next + SLACK);
            self.recorder.switches += 1;
            let coroutine = self.threads[id as usize].coroutine.take();
            return Step::Continue(id, coroutine.expect("a thread that does not run"));
        }
        Step::Over
    }

    fn finish(&mut self, id: ThreadId, stack: DefaultStack) {
        self.free_stacks.push(stack);
        let thread = &mut self.threads[id as usize];
        thread.state = State::Ended;
        thread.turn += 1;
        let (core, at) = (thread.core, thread.clock);
        let joiners = std::mem::take(&mut thread.joiners);
        if id == 0 {
            self.recorder.end(at);
        }
        self.vacate(core, at);
        for joiner in joiners {
            self.make_ready(joiner, at + self.ticks.wake_latency);
        }
    }

    /// Returns an error if the main thread is among those that sleep for ever.
    fn check_deadlock(&self) -> Result<(), RunError> {
        if self.threads[0].state == State::Ended {
            return Ok(());
        }
        let at = self.threads.iter().map(|thread| thread.clock).max().unwrap_or(0) / 1_000;
        Err(RunError::Deadlock { at, blocked: self.blocked().collect() })
    }

    fn blocked(&self) -> impl Iterator<Item = Blocked> {
        self.threads.iter().filter_map(|thread| match thread.state {
            State::Blocked(waits_for) => Some(Blocked { name: thread.name.clone(), waits_for }),
            State::Running | State::Ready => {
                Some(Blocked { name: thread.name.clone(), waits_for: WaitsFor::Unpark })
            }
            State::Ended => None,
        })
    }

    fn report(&self) -> Report {
        let threads = self.threads.iter().map(|thread| (thread.name.clone(), thread.worked));
        let left = self.blocked().map(|blocked| blocked.name).collect();
        self.recorder.report(self.cores.count(), &self.directory, threads, left)
    }

    /// Leaks the stacks of threads that sleep for ever. Their destructors would run outside of the simulation.
    fn leak(mut self: Box<Self>) {
        for thread in &mut self.threads {
            std::mem::forget(thread.coroutine.take());
            std::mem::forget(std::mem::take(&mut thread.locals));
        }
    }
}
