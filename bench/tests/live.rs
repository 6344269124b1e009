//! The counters of the pool that is being measured can be read from any thread. This is a test program of its own,
//! because a process has one such pool at a time.

use std::ops::ControlFlow;
use std::thread;

use heist_bench::{Bench, Selection, Step, Watcher};

/// The entries that were measured, and how many tasks the pool had completed, if it is a heist pool.
#[derive(Default)]
struct Seen(Vec<(String, Option<u64>)>);

impl Watcher for Seen {
    fn before(&mut self, _: &Step<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn after(&mut self, step: &Step<'_>, _: &[f64]) {
        let stats = thread::spawn(heist_bench::live).join().unwrap();
        self.0.push((step.by.into(), stats.map(|stats| stats.total.tasks_completed)));
    }
}

#[test]
fn the_counters_of_the_measured_pool_can_be_read() {
    let selection = Selection {
        cases: vec!["duel/latency".into()],
        peers: vec!["heist".into(), "rayon".into()],
        ..Selection::default()
    };
    let mut bench = Bench::new(&selection).unwrap();
    assert_eq!(heist_bench::live(), None);
    let mut seen = Seen::default();
    bench.run(1, &mut seen);
    let [(first, heist), (second, rayon)] = &seen.0[..] else { panic!("{:?}", seen.0) };
    assert_eq!((first.as_str(), second.as_str()), ("heist", "rayon"));
    assert!(heist.unwrap() > 0);
    assert_eq!((*rayon, heist_bench::live()), (None, None));
}
