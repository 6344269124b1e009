//! The desk of a pipeline: who rests, who sleeps, and who is told.

use std::ptr::NonNull;

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::explore::{Model, models};
use crate::cancel::Follower;
use crate::panic::PanicHook;
use crate::pipeline::models::{After, Catch, Control, Freed, Hire, Rules};
use crate::sync::Arc;
use crate::task::{DetachedTask, End, Refusal, Task};
use crate::worker::current::AnyPool;
use crate::worker::wait;

/// A pool that counts who is hired, and has nobody.
struct Counted(AtomicUsize);

impl AnyPool for Counted {
    fn push_job(&self, _: Task) {
        unreachable!("no forks")
    }

    fn push_remote(&self, task: Task) {
        self.0.fetch_add(1, Relaxed);
        drop(task);
    }

    fn workers(&self) -> usize {
        1
    }

    fn id(&self) -> usize {
        NonNull::from(self).addr().get()
    }

    fn follow(&self, _: &Arc<dyn Follower>) {}
}

/// A worker that does nothing.
struct Nobody;

impl DetachedTask for Nobody {
    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        unreachable!("not run")
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        1
    }

    fn finish(self) {}
}

struct Agency;

impl Hire for Agency {
    fn driver(self: Arc<Self>, _: usize) -> Task {
        Task::detached(Nobody)
    }

    fn end(&self) {}
}

struct Scene {
    control: Arc<Control>,
    pool: Arc<Counted>,
}

impl Scene {
    /// With one worker, who is at work.
    fn new(pulls: bool, bound: usize) -> Self {
        let pool = Arc::new(Counted(AtomicUsize::new(0)));
        let rules = Rules { bound, weight: None, ordered: false, pulls, steals: true };
        let (control, _) = Control::new(rules, Arc::clone(&pool) as _);
        control.open(Arc::new(Agency));
        if pulls {
            control.begin();
        } else {
            control.given(None);
        }
        assert_eq!(pool.0.swap(0, Relaxed), 1, "one was hired");
        Self { control, pool }
    }

    fn hired(&self) -> usize {
        self.pool.0.load(Relaxed)
    }
}

fn caught(batches: u64, after: After) -> Catch {
    Catch { batches, items: batches, weight: 0, needs: 0, after }
}

/// A batch is given while the only worker lies down. The queue is a relaxed counter: the weakest that a lane could be.
fn give_against_rest() {
    let scene = Scene::new(false, 4);
    let lane = Arc::new(AtomicUsize::new(0));
    let worker = {
        let (control, lane) = (Arc::clone(&scene.control), Arc::clone(&lane));
        thread::spawn(move || control.rest(0, || lane.load(Relaxed) > 0))
    };
    lane.store(1, Relaxed);
    scene.control.given(Some(0));
    let rests = worker.join().unwrap();
    assert!(!rests || scene.hired() == 1, "a batch that nobody will see");
    scene.control.close();
}

/// Which comes first?
#[derive(Clone, Copy, PartialEq)]
enum Way {
    MailFirst,
    /// Wrong.
    DeskFirst,
}

/// Results are put into the mail while whoever wants them falls asleep. If it were not woken, loom would see a deadlock.
/// The mail is a relaxed counter: the weakest that it could be.
fn result_against_sleep(way: Way) {
    let scene = Scene::new(false, 4);
    let mail = Arc::new(AtomicUsize::new(0));
    let worker = {
        let (control, mail) = (Arc::clone(&scene.control), Arc::clone(&mail));
        thread::spawn(move || {
            let mut unsaid = 0;
            if way == Way::MailFirst {
                mail.store(1, Relaxed);
                control.put(0, &mut unsaid);
            } else {
                control.put(0, &mut unsaid);
                mail.store(1, Relaxed);
            }
        })
    };
    let came = || mail.load(Relaxed) > 0;
    while !came() {
        let handle = scene.control.sleep(&Freed::default(), 0, true);
        let handle = handle.expect("the source has not ended");
        if !came() {
            wait::wait(&handle, 0);
        }
        scene.control.wake_reason();
    }
    worker.join().unwrap();
    scene.control.close();
}

/// The only batch that may be in flight is delivered while the thread of the source falls asleep.
fn room_against_sleep() {
    let scene = Scene::new(false, 1);
    assert_eq!(scene.control.wait_to_pull().map(|grant| grant.batches), Some(1));
    assert!(scene.control.pulled(caught(1, After::More), true).is_none(), "it is full");
    let source = {
        let control = Arc::clone(&scene.control);
        thread::spawn(move || control.wait_to_pull().map(|grant| grant.next))
    };
    scene.control.freed(Freed { batches: 1, weight: 0, results: 1 });
    assert_eq!(source.join().unwrap(), Some(1));
    scene.control.close();
}

/// The source says that it has nothing while something is sent to it: somebody must come back.
fn ring_against_dry() {
    let scene = Scene::new(true, 4);
    scene.control.may_pull();
    let sender = {
        let control = Arc::clone(&scene.control);
        thread::spawn(move || control.ring())
    };
    scene.control.pulled(caught(0, After::Dry), false);
    let rests = scene.control.rest(0, || false);
    sender.join().unwrap();
    assert!(!rests || scene.hired() == 1, "nobody goes to the source");
    scene.control.close();
}

/// The source ends while whoever wants results falls asleep, and there are none.
fn end_against_sleep() {
    let scene = Scene::new(true, 4);
    scene.control.may_pull();
    let worker = {
        let control = Arc::clone(&scene.control);
        thread::spawn(move || drop(control.pulled(caught(0, After::End), false)))
    };
    while let Some(handle) = scene.control.sleep(&Freed::default(), 0, true) {
        wait::wait(&handle, 0);
        scene.control.wake_reason();
    }
    worker.join().unwrap();
    assert!(scene.control.close().is_none());
}

models! {
    pipeline_give_against_rest: give_against_rest, None, 30;
    pipeline_result_against_sleep: || result_against_sleep(Way::MailFirst), None, 1000;
    pipeline_room_against_sleep: room_against_sleep, None, 50;
    pipeline_ring_against_dry: ring_against_dry, None, 10;
    pipeline_end_against_sleep: end_against_sleep, None, 250;
}

/// The same with its steps the other way round: it must fail.
pub(crate) const WRONG: &[Model] = &[Model {
    name: "pipeline_desk_before_mail",
    run: || result_against_sleep(Way::DeskFirst),
    preemptions: None,
    floor: 0,
}];
