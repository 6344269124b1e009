//! `fork()` while pools run. A child has a copy of every pool and none of the threads: each use ends soon, by an error that says
//! so, and a new pool works.

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use heist::pipeline::Pipeline;
use heist::{JoinHandle, Pool, parallel};

use crate::case::{Case, Size};
use crate::work::{STRATEGIES, fib};

/// What the message of every refusal says.
const REFUSAL: &str = "before this process was forked";
/// What the last message of a process says whose task would wait for ever.
const LAST_WORDS: &str = "fork() was called by a task";
/// A child counts as hanging after this time.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("fork: every use of an idle pool", every_use),
        Case::new("fork: every use of a busy pool", every_use_while_busy),
        Case::new("fork: a new pool while others are busy", new_pool_while_busy),
        Case::new("fork: of the global pool and its guests", global),
        Case::new("fork: by a task", by_a_task),
        Case::new("fork: by a task, while a thread writes messages", by_a_task_during_messages),
        Case::new("fork: a child of a child", twice),
        Case::new("fork: children of a busy child", twice_while_busy),
        Case::new("fork: a long task while two threads stop the pool", long_stop),
    ]
}

/// How a child has ended, and what it has written to its standard error.
struct Child {
    status: libc::c_int,
    text: String,
}

impl Child {
    /// Panics unless the child has ended well.
    fn assert_well(&self, what: &str) {
        assert!(self.status == 0, "{what}: status {:#x}: {}", self.status, self.text);
    }

    /// Panics unless the child was aborted after saying that.
    fn assert_aborted(&self, what: &str, words: &str) {
        let is_aborted =
            libc::WIFSIGNALED(self.status) && libc::WTERMSIG(self.status) == libc::SIGABRT;
        assert!(is_aborted, "{what}: status {:#x}: {}", self.status, self.text);
        assert!(self.text.contains(words), "{what}: {}", self.text);
    }
}

/// Calls `f` in a child of this process, on the copy of the calling thread, and waits for the end of the child.
fn fork(f: impl FnOnce()) -> Child {
    let mut pipe = [0; 2];
    // SAFETY: the place has room for two numbers.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let [from, to] = pipe;
    // SAFETY: the child uses what heist promises to work there, and the standard library's locks only as `catch_unwind` does.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: both are open.
            unsafe { libc::dup2(to, 2) };
            let code = if catch_unwind(AssertUnwindSafe(f)).is_ok() { 0 } else { 1 };
            // SAFETY: nothing of this process is used afterwards.
            unsafe { libc::_exit(code) };
        }
        child => {
            assert!(child > 0, "no child");
            // SAFETY: open, and not used any more.
            unsafe { libc::close(to) };
            // SAFETY: open, and nobody else's.
            let text = unsafe { File::from_raw_fd(from) };
            wait(child, text)
        }
    }
}

fn wait(child: libc::pid_t, mut output: File) -> Child {
    let (start, mut status) = (Instant::now(), 0);
    // What the child writes fits into the pipe.
    loop {
        // SAFETY: a child of this process, and a place for a number.
        match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
            0 if start.elapsed() > PATIENCE => {
                // SAFETY: a child of this process that was not waited for.
                unsafe { libc::kill(child, libc::SIGABRT) };
                // Not a panic: the pools that it would drop wait for tasks.
                eprintln!("a child hangs");
                std::process::abort();
            }
            0 => thread::sleep(Duration::from_micros(200)),
            done => break assert_eq!(done, child),
        }
    }
    let mut text = String::new();
    output.read_to_string(&mut text).expect("a text");
    Child { status, text }
}

/// Panics unless the closure panics with the refusal.
fn assert_refused<R>(what: &str, f: impl FnOnce() -> R) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else { panic!("{what} was not refused") };
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or_default();
    assert!(text.contains(REFUSAL), "{what}: {text}");
}

fn builders() -> [heist::Builder; 4] {
    let [a, b, c] = STRATEGIES.map(|strategy| Pool::builder().workers(2).strategy(strategy));
    // Several clusters.
    [a, b, c, Pool::builder().workers(20)]
}

/// A use of a pool, and of a handle whose task was running when the process was forked.
type Use = (&'static str, fn(Pool, JoinHandle<()>));

const USES: [Use; 14] = [
    ("spawn", |pool, _| assert_refused("spawn", || pool.spawn(|| ()))),
    ("spawn_batch", |pool, _| {
        assert_refused("spawn_batch", || pool.spawn_batch([|| (), || ()]));
    }),
    ("a task of high priority", |pool, _| {
        let builder = || pool.task().priority(heist::Priority::High);
        assert_refused("a task of high priority", || builder().spawn(|| ()));
    }),
    ("a near task", |pool, _| assert_refused("near", || pool.task().near(0).spawn(|| ()))),
    ("a future", |pool, _| assert_refused("a future", || pool.spawn_future(async {}).join())),
    ("install", |pool, _| assert_refused("install", || pool.install(|| 1))),
    ("join", |pool, _| assert_refused("join", || pool.join(|| 1, || 2))),
    ("scope", |pool, _| assert_refused("scope", || pool.scope(|_| ()))),
    ("broadcast", |pool, _| assert_refused("broadcast", || pool.broadcast(|_| ()))),
    ("pipelines", |pool, _| {
        let run = || Pipeline::new(0..10).map(|n| n).run(&pool, |_| ());
        assert_refused("a pipeline", run);
    }),
    ("results", |pool, _| {
        assert_refused("results", || Pipeline::new(0..10).map(|n| n).results(&pool));
    }),
    ("stop", |pool, _| assert_refused("stop", || pool.stop())),
    ("a handle", |pool, handle| {
        assert!(!handle.is_finished());
        assert_refused("a handle", || handle.join());
        // What does not need the threads works.
        assert!(pool.workers() >= 2);
        assert!(!pool.dump().to_string().is_empty());
        assert!(pool.stats().threads >= 2);
    }),
    ("drop", |pool, handle| {
        drop(handle);
        drop(pool);
    }),
];

/// Builds a pool with a task that runs until the sender is dropped.
fn with_running_task(builder: heist::Builder) -> (Pool, JoinHandle<()>, mpsc::Sender<()>) {
    let pool = builder.build().expect("a pool");
    let (open, gate) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let handle = pool.spawn(move || {
        begin.send(()).expect("it waits");
        let _ = gate.recv();
    });
    begun.recv().expect("it begins");
    (pool, handle, open)
}

fn every_use(_: Size) {
    for (name, use_it) in USES {
        for builder in builders() {
            let (pool, handle, open) = with_running_task(builder);
            let mut both = Some((pool, handle));
            fork(|| {
                let (pool, handle) = both.take().expect("once");
                use_it(pool, handle);
                new_pool_works();
            })
            .assert_well(name);
            drop(open);
            let (pool, handle) = both.take().expect("the child has a copy");
            handle.join().expect("the parent's task goes on");
            assert_eq!(pool.install(|| fib(12)), 144);
        }
    }
}

/// Builds a pool in this process, and uses it.
fn new_pool_works() {
    let pool = Pool::builder().workers(2).build().expect("a pool");
    assert_eq!(pool.install(|| fib(15)), 610);
    let tasks: Vec<_> = (0..200).map(|n| pool.spawn(move || n)).collect();
    assert_eq!(tasks.into_iter().map(|task| task.join().expect("a result")).sum::<i32>(), 19_900);
    // The loop runs on this thread if the global pool is a copy.
    let sum = parallel::reduce(0..100_000_u64, || 0, |a, b| a + b, |a, b| a + b);
    assert_eq!(sum, 4_999_950_000);
    pool.stop();
}

/// Keeps a pool busy with tasks from outside and inside until it is dropped.
struct Load {
    pool: Arc<Pool>,
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn begin(builder: heist::Builder) -> Self {
        let pool = Arc::new(builder.build().expect("a pool"));
        let over = Arc::new(AtomicBool::new(false));
        let threads = (0..2)
            .map(|_| {
                let (pool, over) = (Arc::clone(&pool), Arc::clone(&over));
                thread::spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        let tasks: Vec<_> = (0..100)
                            .map(|n| pool.spawn(move || fib(5) + u64::from(n == 0)))
                            .collect();
                        let prior = pool.task().priority(heist::Priority::High).spawn(|| fib(8));
                        tasks.into_iter().for_each(|task| _ = task.join().expect("a result"));
                        assert_eq!(prior.join().expect("a result"), 21);
                    }
                })
            })
            .collect();
        Self { pool, over, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("no panic"));
    }
}

fn every_use_while_busy(size: Size) {
    for builder in builders() {
        let load = Load::begin(builder);
        for round in 0..size.choose(3, 40) {
            for (name, use_it) in &USES[..11] {
                let pool = &load.pool;
                let use_all = || {
                    // SAFETY: the pool is not used afterwards; in the child it is never dropped.
                    let copy = unsafe { std::ptr::read(&raw const **pool) };
                    let nothing = Pool::builder().workers(1).build().expect("a pool");
                    use_it(copy, nothing.spawn(|| ()));
                    std::mem::forget(nothing);
                };
                fork(use_all).assert_well(&format!("{name}, round {round}"));
            }
        }
    }
}

fn new_pool_while_busy(size: Size) {
    for builder in builders() {
        let _load = Load::begin(builder);
        for _ in 0..size.choose(20, 400) {
            fork(new_pool_works).assert_well("a new pool");
        }
    }
}

fn global(_: Size) {
    // A guest of the global pool.
    assert_eq!(fib(15), 610);
    let children = [
        fork(|| assert_refused("a free join", || heist::join(|| 1, || 2))),
        fork(|| assert_refused("a free scope", || heist::scope(|_| ()))),
        fork(|| assert_refused("a free spawn", || heist::spawn(|| ()))),
        fork(new_pool_works),
        // In the middle of a visit, whose second half is with a worker.
        fork(|| ()),
    ];
    for (number, child) in children.iter().enumerate() {
        child.assert_well(&format!("child {number}"));
    }
    let child = heist::join(|| fork(|| assert_eq!(fib(12), 144)), || fib(12));
    // Alone, the guest may have had all work to itself.
    assert!(child.0.status == 0 || child.0.text.contains(LAST_WORDS), "{}", child.0.text);
    let exits = fork(|| {
        // Runs the destructors of thread-locals, and the functions that are called at exit.
        std::process::exit(0)
    });
    exits.assert_well("an exit");
    assert_eq!(fib(15), 610);
}

fn by_a_task(size: Size) {
    for builder in builders() {
        let pool = builder.build().expect("a pool");
        for _ in 0..size.choose(5, 50) {
            let child = pool.spawn(|| fork(|| ()));
            child.join().expect("a result").assert_well("_exit in a task");
            // What the copy spawns and forks itself, it can do.
            let child = pool.spawn(|| fork(|| assert_eq!(fib(10), 55)));
            let child = child.join().expect("a result");
            assert!(child.status == 0 || child.text.contains(LAST_WORDS), "{}", child.text);
            waits_for_a_thread_that_is_not_there(&pool);
            returns_in_the_child(&pool);
        }
        assert_eq!(pool.install(|| fib(12)), 144);
    }
}

/// Forks in a task, and goes on in both processes. Returns the child to the parent.
fn fork_and_go_on(output: libc::c_int) -> libc::pid_t {
    // SAFETY: the child uses what heist promises to work there.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: both are open.
        unsafe { libc::dup2(output, 2) };
    }
    child
}

/// Panics unless the child that `start` returns is aborted with the last words. The argument is where the child writes.
fn assert_aborted(what: &str, start: impl FnOnce(libc::c_int) -> libc::pid_t) {
    let mut pipe = [0; 2];
    // SAFETY: the place has room for two numbers.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let [from, to] = pipe;
    let child = start(to);
    // SAFETY: open, and not used any more.
    unsafe { libc::close(to) };
    // SAFETY: open, and nobody else's.
    let output = unsafe { File::from_raw_fd(from) };
    wait(child, output).assert_aborted(what, LAST_WORDS);
}

/// The second half of a join runs on another thread when the first half forks the process.
fn waits_for_a_thread_that_is_not_there(pool: &Pool) {
    let met = Barrier::new(2);
    let (open, gate) = mpsc::channel::<()>();
    assert_aborted("a wait for a stolen half", |output| {
        let first = || {
            met.wait();
            let child = fork_and_go_on(output);
            drop(open);
            child
        };
        let (gate, met) = (gate, &met);
        let second = move || {
            met.wait();
            assert!(gate.recv().is_err());
        };
        pool.join(first, second).0
    });
}

fn returns_in_the_child(pool: &Pool) {
    assert_aborted("a return to the pool", |output| {
        pool.spawn(move || fork_and_go_on(output)).join().expect("a result")
    });
}

/// The child says why it ends, although a thread that is not there has the lock of the standard error.
fn by_a_task_during_messages(_: Size) {
    for builder in builders() {
        let pool = builder.build().expect("a pool");
        let (lock, locked) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let writer = thread::spawn(move || {
            let _messages = std::io::stderr().lock();
            lock.send(()).expect("a case that waits");
            let _ = gate.recv();
        });
        locked.recv().expect("a thread that locks");
        returns_in_the_child(&pool);
        drop(open);
        writer.join().expect("no panic");
    }
}

fn twice(_: Size) {
    let pool = Pool::builder().workers(2).build().expect("a pool");
    let child = fork(|| {
        let own = Pool::builder().workers(2).build().expect("a pool");
        assert_eq!(own.install(|| fib(12)), 144);
        let grandchild = fork(|| {
            assert_refused("the first pool", || pool.install(|| 1));
            assert_refused("the second pool", || own.install(|| 1));
            new_pool_works();
        });
        grandchild.assert_well("the grandchild");
        assert_refused("the first pool", || pool.install(|| 1));
        assert_eq!(own.install(|| fib(12)), 144);
        own.stop();
    });
    child.assert_well("the child");
}

/// Whatever the threads of a child do while it is forked itself, a new pool works in its child.
fn twice_while_busy(size: Size) {
    // The first process has to have a pool, to be told of copies.
    let _pool = Pool::builder().workers(1).build().expect("a pool");
    let child = fork(|| {
        let (_pool, mut handle, open) = with_running_task(Pool::builder().workers(2));
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            // It asks again and again whether the pool was built in this process.
            scope.spawn(|| {
                let mut context = Context::from_waker(Waker::noop());
                while !over.load(Ordering::Relaxed) {
                    assert!(Pin::new(&mut handle).poll(&mut context).is_pending());
                }
            });
            // The child itself must not seem to hang.
            let (start, time) = (Instant::now(), Duration::from_secs(size.choose(3, 20)));
            while start.elapsed() < time {
                fork(new_pool_works).assert_well("a grandchild");
            }
            over.store(true, Ordering::Relaxed);
        });
        drop(open);
    });
    child.assert_well("the child");
}

/// In a child, one thread waits for the end of a task in `stop`, and another one for the first: longer than a child waits for the
/// locks of threads that are not there.
fn long_stop(size: Size) {
    let _pool = Pool::builder().workers(1).build().expect("a pool");
    let child = fork(|| {
        let pool = Pool::builder().workers(1).build().expect("a pool");
        let time = Duration::from_millis(size.choose(100, 20_000));
        let task = pool.spawn(move || thread::sleep(time));
        thread::scope(|scope| {
            scope.spawn(|| pool.stop());
            scope.spawn(|| pool.stop());
        });
        task.join().expect("it was accepted");
    });
    child.assert_well("the child");
}
