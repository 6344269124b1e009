//! `Pool::broadcast`: a closure that every worker calls once.
//!
//! Each worker gets a task in a queue that only the worker with that number looks into (`idle/README.md`, step P5). A thread
//! that waits with its core does not run that task on top of the one that waits, but hands its core to another thread, as it
//! does for all work that is no part of what it awaits. Only if the pool may have no more threads, it runs the task itself.

use std::any::{Any, type_name};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

use crate::api::pool::{Inner, Pool, with_shared};
use crate::fork::job;
use crate::fork::latch::CountLatch;
use crate::panic::{AbortOnUnwind, PanicHook, contain, contain_each};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, UnsafeCell, lock};
use crate::task::{DetachedTask, End, Refusal, Task};
use crate::worker::current::{AnyWorker, with_worker_thread};
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;
use crate::worker::wait::wait;

impl Pool {
    /// Calls a closure once on every worker, with the worker's number, and returns the results in the order of the numbers. In a
    /// pool that was [resized](Self::resize), these are the workers that it uses.
    ///
    /// A worker calls the closure when it has no task of its own left, or after some of them; see also
    /// [`worker_index`](crate::worker_index). What is guaranteed is that each worker calls it once, not that they do so at
    /// the same time, and not on which threads: a thread that waits for a task gives its worker to another thread. If the
    /// caller is one of the workers, it calls the closure first, and waits for the others. A worker that is blocked, or that
    /// runs one task for long, delays the result for as long.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(3).build()?;
    /// let numbers = pool.broadcast(|worker| {
    ///     assert_eq!(heist::worker_index(), Some(worker));
    ///     worker * 10
    /// });
    /// assert_eq!(numbers, [0, 10, 20]);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the closure panics on a worker, the others call it all the same, and then the first panic is passed on. Also panics
    /// if the pool has stopped, or is stopped by [`stop_now`](Self::stop_now) before all workers have called the closure; and in
    /// a hook at the start or the end of one of the pool's threads, which is no worker there.
    pub fn broadcast<F, R>(&self, f: F) -> Vec<R>
    where
        F: Fn(usize) -> R + Sync,
        R: Send,
    {
        with_shared!(self, shared => broadcast_on(&**shared, &f))
    }
}

/// What all workers need for one broadcast. It lies in the frame of the caller, which waits for all of them.
struct Call<'f, F, R> {
    f: &'f F,
    /// The results, by worker. An entry is written by its worker, and read when all have ended.
    results: Vec<UnsafeCell<Option<R>>>,
    /// The first panic.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Was a worker not to call the closure any more?
    ///
    /// Ordering: relaxed. The end of the latch orders it.
    refused: AtomicBool,
    latch: CountLatch,
}

// SAFETY: the closure is `Sync` and the results are `Send`. An entry of the results is touched by one thread at a time, as
// stated at the field.
unsafe impl<F: Sync, R: Send> Sync for Call<'_, F, R> {}

impl<F, R> Call<'_, F, R>
where
    F: Fn(usize) -> R + Sync,
    R: Send,
{
    /// Calls the closure as that worker, and keeps the result.
    fn run(&self, worker: usize) -> End {
        match catch_unwind(AssertUnwindSafe(|| (self.f)(worker))) {
            Ok(value) => {
                self.results[worker].with_mut(|result| {
                    // SAFETY: only this worker touches the entry, until all have ended.
                    unsafe { *result = Some(value) };
                });
                End::Completed
            }
            Err(payload) => {
                let mut first = lock(&self.panic);
                let other = if first.is_none() { first.replace(payload) } else { Some(payload) };
                drop(first);
                contain(|| drop(other));
                End::Panicked
            }
        }
    }
}

/// The call of one worker, as a task.
struct Share<'f, F, R> {
    call: NonNull<Call<'f, F, R>>,
    worker: usize,
}

// SAFETY: a share is the right to use a part of a call, which is `Sync`.
unsafe impl<F: Sync, R: Send> Send for Share<'_, F, R> {}

impl<F, R> DetachedTask for Share<'_, F, R>
where
    F: Fn(usize) -> R + Sync,
    R: Send,
{
    fn name() -> &'static str {
        type_name::<F>()
    }

    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        // SAFETY: the caller waits for this share.
        unsafe { self.call.as_ref() }.run(self.worker)
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        // SAFETY: the caller waits for this share.
        unsafe { self.call.as_ref() }.refused.store(true, Ordering::Relaxed);
        1
    }

    fn finish(self) {
        // SAFETY: the caller waits for this share.
        let latch = NonNull::from(unsafe { &self.call.as_ref().latch });
        // SAFETY: alive, for the same reason; each share was counted, and is finished once.
        unsafe { CountLatch::done(latch, 1) };
    }
}

fn broadcast_on<Q, F, R>(shared: &Shared<Q>, f: &F) -> Vec<R>
where
    Q: PoolQueues,
    F: Fn(usize) -> R + Sync,
    R: Send,
{
    let workers = shared.workers_in_use();
    let is_here = with_worker_thread(shared, |thread| {
        assert!(
            thread.in_service.get() && job::is_open(),
            "Pool::broadcast: this thread is no worker in its hooks; broadcast from a task, or from outside"
        );
        thread.worker_index()
    });
    shared.must_be_here();
    if is_here.is_none() && shared.idle.is_stopping() {
        stopped();
    }
    // A worker that is about to retire is none of them.
    let own = is_here.flatten().filter(|&own| own < workers);
    let guard = AbortOnUnwind;
    let others = (0..workers).filter(|&worker| Some(worker) != own);
    // One more for the caller itself.
    let (latch, end) = CountLatch::new(1 + others.clone().count() as u64);
    let call = Call {
        f,
        results: (0..workers).map(|_| UnsafeCell::new(None)).collect(),
        panic: Mutex::new(None),
        refused: AtomicBool::new(false),
        latch,
    };
    let share = |worker| {
        let share = Share { call: NonNull::from(&call), worker };
        // SAFETY: the call and what it borrows outlive the share: this function does not return before all of them are
        // finished, and it does not unwind, because the guard would abort.
        (worker, unsafe { Task::detached_borrowing(share) })
    };
    shared.broadcast_to(others.map(share).collect());
    if let Some(worker) = own {
        with_worker_thread(shared, |thread| {
            thread.with_tally(|tally| tally.one(|block| &block.tasks_submitted));
            let end = call.run(worker);
            thread.count(end);
        });
    }
    // SAFETY: alive, and the caller was counted once.
    unsafe { CountLatch::done(NonNull::from(&call.latch), 1) };
    wait(&end, shared.id());
    // Taking the outcome makes everything visible that the workers have done.
    end.take().expect("the last one keeps the promise");
    std::mem::forget(guard);
    let results = call.results.iter().map(|result| {
        result.with_mut(|result| {
            // SAFETY: all workers have ended, so the caller has the results to itself.
            unsafe { (*result).take() }
        })
    });
    let panic = lock(&call.panic).take();
    match panic {
        None if call.refused.load(Ordering::Relaxed) => {
            contain_each(results);
            stopped()
        }
        None => results.map(|result| result.expect("each worker has called it")).collect(),
        Some(payload) => {
            contain_each(results);
            resume_unwind(payload)
        }
    }
}

#[cold]
fn stopped() -> ! {
    panic!("Pool::broadcast: the pool has stopped; broadcast before the stop, or on another pool")
}
