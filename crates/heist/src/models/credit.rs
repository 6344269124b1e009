//! Models of how the parts of a scope are counted: with the real latch and the real purses, on threads that do what the
//! worker loop does with them.

use std::ptr::NonNull;

use loom::sync::Mutex;
use loom::thread;

use super::explore::{Model, models};
use super::fork::Once;
use crate::fork::latch::CountLatch;
use crate::fork::purse::{self, ADVANCE};
use crate::sync::Arc;
use crate::task::listener::Listener;
use crate::task::{Awaited, Promise, TaskHandle};

/// What the threads of a model do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    /// A thread that finds no part keeps its credit.
    KeepWhenIdle,
    /// A thread that runs a task which is no part of the scope keeps its credit.
    KeepInTask,
    /// A part that a part spawns is not counted.
    Uncounted,
    /// A thread looks at the latch after it has returned its credit.
    LookLater,
}

/// A scope whose parts are numbers.
struct Scene {
    latch: CountLatch,
    queue: Mutex<Vec<usize>>,
    /// What each part has done.
    results: [Once; 3],
    way: Way,
    /// The scope in which the parent spawns, if it is another one.
    other: Option<Arc<Self>>,
}

/// This part spawns the child.
const PARENT: usize = 1;
const CHILD: usize = 2;

impl Scene {
    /// Opens the scope on this thread (C1).
    fn open(way: Way, other: Option<Arc<Self>>) -> (Arc<Self>, TaskHandle<Vec<()>>) {
        let (latch, end) = CountLatch::new(ADVANCE);
        let queue = Mutex::new(Vec::new());
        let results = [Once::new(), Once::new(), Once::new()];
        let scene = Arc::new(Self { latch, queue, results, way, other });
        // SAFETY: the latch was made with that count, and one is for the closure.
        unsafe { purse::fill(&scene.latch, ADVANCE - 1) };
        (scene, end)
    }

    /// Spawns a part (C2).
    fn spawn(&self, part: usize) {
        if self.is_counted(part) {
            purse::spend(&self.latch, || true);
        }
        self.queue.lock().unwrap().push(part);
    }

    fn take(&self) -> Option<usize> {
        self.queue.lock().unwrap().pop()
    }

    /// Runs a part to its end (C3).
    fn run(&self, part: usize) {
        purse::flush_unless(&self.latch);
        if part == PARENT {
            self.other.as_deref().unwrap_or(self).spawn(CHILD);
        }
        self.results[part].happen();
        if self.is_counted(part) {
            // SAFETY: alive, because the scope waits for the part, which was counted by `spawn`.
            unsafe { purse::keep(NonNull::from(&self.latch)) };
        }
    }

    fn is_counted(&self, part: usize) -> bool {
        part != CHILD || self.way != Way::Uncounted
    }

    /// Runs parts until there are none, and flushes (C4).
    fn work(&self, way: Way) {
        while let Some(part) = self.take() {
            self.run(part);
        }
        if way != Way::KeepWhenIdle {
            purse::flush();
        }
        if way == Way::LookLater {
            self.latch.more(0);
        }
    }

    /// Closes the scope (C6), helps, and waits for its end.
    fn close(&self, end: TaskHandle<Vec<()>>) {
        let count = 1 + purse::take_all(&self.latch);
        // SAFETY: alive; the count is this thread's.
        unsafe { CountLatch::done(NonNull::from(&self.latch), count) };
        self.work(Way::Right);
        wait(&end);
        end.take().expect("the last one keeps the promise");
        self.latch.is_gone();
    }

    fn times(&self) -> [usize; 3] {
        [0, PARENT, CHILD].map(|part| self.results[part].times())
    }
}

/// Parts are spawned, stolen, spawn and end on two threads. The scope's owner sees what all of them have done, once each,
/// and nothing uses the latch afterwards. An advance is so small that purses are used up.
fn steal(way: Way) {
    let (scene, end) = Scene::open(way, None);
    let worker = thread::spawn({
        let scene = Arc::clone(&scene);
        move || scene.work(way)
    });
    scene.spawn(0);
    scene.spawn(PARENT);
    scene.close(end);
    assert_eq!(scene.times(), [1, 1, 1], "{UNFINISHED}");
    worker.join().unwrap();
}

/// A worker that has run a part goes on with a task that ends only when the scope has returned.
fn other_task(way: Way) {
    let (scene, end) = Scene::open(way, None);
    let (task, handle) = Promise::<()>::new();
    let worker = thread::spawn({
        let scene = Arc::clone(&scene);
        move || {
            if let Some(part) = scene.take() {
                scene.run(part);
            }
            if way != Way::KeepInTask {
                purse::flush();
            }
            wait(&handle);
            purse::flush();
        }
    });
    scene.spawn(0);
    scene.close(end);
    task.fulfil(Ok(Vec::new()), None);
    assert_eq!(scene.times(), [1, 0, 0], "{UNFINISHED}");
    worker.join().unwrap();
}

/// A thread opens a scope within another one (C5). A part of the inner one, perhaps on another thread, spawns in the outer
/// one, while the thread has credit of the inner one or has none.
fn nested() {
    let (outer, outer_end) = Scene::open(Way::Right, None);
    let set_aside = purse::set_aside();
    let (inner, inner_end) = Scene::open(Way::Right, Some(Arc::clone(&outer)));
    let worker = thread::spawn({
        let (inner, outer) = (Arc::clone(&inner), Arc::clone(&outer));
        move || {
            inner.work(Way::Right);
            outer.work(Way::Right);
        }
    });
    inner.spawn(PARENT);
    inner.spawn(0);
    inner.close(inner_end);
    drop(set_aside);
    assert_eq!(inner.times(), [1, 1, 0], "{UNFINISHED}");
    outer.close(outer_end);
    assert_eq!(outer.times(), [0, 0, 1], "{UNFINISHED}");
    worker.join().unwrap();
}

fn wait(awaited: &dyn Awaited) {
    let listener = Arc::new(Listener::thread());
    if awaited.listen(Arc::clone(&listener)) {
        while !awaited.is_done() {
            listener.sleeper().park();
        }
    }
}

models! {
    credit_steal: || steal(Way::Right), Some(6), 6_800;
    credit_other_task: || other_task(Way::Right), None, 4_300;
    credit_nested: nested, Some(5), 8_700;
}

/// What is reported if a scope ends too early.
const UNFINISHED: &str = "a part has not run";

/// The same models with a step left out or one too many, and what is reported: these must fail.
pub(crate) const WRONG: &[Model] = &[
    wrong("credit_kept_when_idle", || steal(Way::KeepWhenIdle)),
    wrong("credit_kept_in_task", || other_task(Way::KeepInTask)),
    wrong("credit_uncounted", || steal(Way::Uncounted)),
    wrong("credit_look_later", || steal(Way::LookLater)),
];

const fn wrong(name: &'static str, run: fn()) -> Model {
    Model { name, run, preemptions: Some(3), floor: 0 }
}
