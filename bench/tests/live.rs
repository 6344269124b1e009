//! Whoever watches a run sees what the pool has counted, from any thread. In a process of its own: there is one such pool at a time.

use std::ops::ControlFlow;
use std::thread;

use heist_bench::{Bench, Selection, Step, Watcher};

/// Who was measured, and how many tasks its pool had completed then, if it was one of ours.
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
fn the_pool_that_is_measured_can_be_watched() {
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
