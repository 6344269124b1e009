//! Models of private tasks: the owner pushes and pops them, a thief raids them, and no worker sleeps while another one has some
//! and does not look.

use loom::sync::Mutex;
use loom::thread;

use super::explore::{Model, models};
use super::fork::Scene;
use super::raid::sleep_or_raid;
use crate::fork::demand::Demand;
use crate::fork::job;
use crate::fork::raid::{self, Raided};
use crate::queues::{Queues, Stealing};
use crate::sync::Arc;
use crate::task::Task;
use crate::task::listener::Listener;

fn task() -> Task {
    // SAFETY: it borrows nothing.
    unsafe { Task::new(|| ()) }.0
}

/// Adds a task to those of the calling thread, which is a worker, as `WorkerThread::push_private` does.
fn push(task: Task) {
    job::with_tasks(|private, demand| {
        // SAFETY: the private tasks of the calling thread.
        if let Err(task) = unsafe { private.tasks.push(task) } {
            let guard = demand.guard().expect("there are raids");
            // SAFETY: the owner, which holds the lock.
            unsafe { private.tasks.make_room(&guard) };
            // SAFETY: the owner.
            assert!(unsafe { private.tasks.push(task) }.is_ok(), "there is room");
        }
        Some(())
    });
}

/// Takes the newest task of the calling thread.
fn pop() -> Option<Task> {
    // SAFETY: the private tasks of the calling thread, and its demand.
    job::with_tasks(|private, demand| unsafe { private.tasks.pop(demand) })
}

/// The tasks that were taken.
struct Taken(Mutex<Vec<Task>>);

impl Taken {
    /// Keeps a task that was taken, until the end of the model.
    fn keep(&self, task: Task) {
        let mut taken = self.0.lock().unwrap();
        if taken.iter().any(|other| other.id() == task.id()) {
            // It must not be dropped twice: the model is to say what is wrong, and nothing else.
            std::mem::forget(task);
            panic!("a task was taken twice");
        }
        taken.push(task);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Push,
    Pop,
}
use Step::{Pop, Push};

/// The owner takes these steps and then pops what is left, while a thief raids. Every task is taken once.
fn against_thief(steps: &[Step]) {
    let demand = Demand::new(0, 1).with_raids().with_private_tasks();
    let (scene, mut own) = <Scene>::with_demand(demand);
    let taken = Arc::new(Taken(Mutex::new(Vec::new())));
    let thief = thread::spawn({
        let (scene, taken) = (Arc::clone(&scene), Arc::clone(&taken));
        move || {
            if let Some(Raided::Tasks(task, more)) = raid::raid(&scene.demand, None) {
                [task].into_iter().chain(more).for_each(|task| taken.keep(task));
            }
        }
    });
    scene.as_worker_thread(own.remove(0), || {
        for step in steps {
            match step {
                Push => push(task()),
                Pop => pop().into_iter().for_each(|task| taken.keep(task)),
            }
        }
        while let Some(task) = pop() {
            taken.keep(task);
        }
    });
    thief.join().unwrap();
    let pushed = steps.iter().filter(|&&step| step == Push).count();
    assert_eq!(taken.0.lock().unwrap().len(), pushed, "a task was lost");
}

/// The owner spawns a task and then waits for it by means of its own, while the only other worker goes to sleep: that worker
/// must not sleep, or must be woken.
fn against_sleep() {
    let demand = Demand::new(0, 1).with_raids().with_private_tasks();
    let (scene, mut own) = <Scene>::with_demand(demand);
    let worker = thread::spawn({
        let scene = Arc::clone(&scene);
        move || sleep_or_raid(&scene)
    });
    let done = Arc::new(Listener::thread());
    let (unused, own) = (own.remove(1), own.remove(0));
    scene.as_worker_thread(unused, || {
        let notify = Arc::clone(&done);
        // SAFETY: it borrows nothing.
        push(unsafe { Task::new(move || notify.notify()) }.0);
        if job::is_demanded() && !scene.demand.may_keep(&scene.idle) {
            answer(&scene, &own);
        }
        done.sleeper().park();
    });
    worker.join().unwrap();
}

/// Publishes the oldest private task, if there is one left, as `WorkerThread::publish_tasks` does.
fn answer(scene: &Scene, own: &<Stealing as Queues>::Own) {
    job::forget_raid();
    job::with_tasks(|private, demand| {
        let guard = demand.guard().expect("there are raids");
        // SAFETY: the owner, which holds the lock.
        let task = unsafe { private.tasks.take_oldest(&guard) }?;
        demand.lower();
        scene.queues.push_local(own, task, scene.ledger.of_non_workers());
        Some(())
    });
    let _ = scene.idle.work_added(0);
}

models! {
    private_pop_against_thief: || against_thief(&[Push, Push]), Some(5), 2_700;
    private_push_against_thief: || against_thief(&[Push, Pop, Push]), Some(5), 1_100;
    private_growth_against_thief: || against_thief(&[Push, Push, Push]), Some(4), 1_900;
    private_against_sleep: against_sleep, Some(6), 25_000;
}
