//! Models of the counters: what a snapshot may show.

use loom::thread;

use super::explore::{Model, models};
use crate::stats::Ledger;
use crate::sync::Arc;

/// A task is submitted by a thread outside and completed by a worker while another thread reads.
fn snapshot() {
    let ledger = Arc::new(Ledger::new(1, 1));
    let read = Arc::clone(&ledger);
    let reader = thread::spawn(move || {
        let stats = read.read();
        assert!(stats.total.tasks_completed <= stats.total.tasks_submitted, "{stats:?}");
    });
    ledger.of_non_workers().one(|block| &block.tasks_submitted);
    ledger.of_worker(0).tally().one(|block| &block.tasks_completed);
    reader.join().unwrap();
    let stats = ledger.read();
    assert_eq!((stats.total.tasks_submitted, stats.total.tasks_completed), (1, 1));
}

models! {
    stats_snapshot: snapshot, None, 20;
}
