//! Runs after one that has ended early: with `resume` they go on with it, and otherwise they begin again.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(target_os = "linux")]

mod common;

use common::roles::{cluster, squares, squares_into};
use common::{BATCHES, GATE, JETSTREAM, Server, until};
use heist_cluster::{ClusterError, ClusterReport};

#[test]
fn a_failed_run_is_resumed() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    server.open_gate();
    let settings = cluster(&server.url()).resume(true).build().expect("settings");
    {
        let _worker = server.worker("a", "panic=50");
        squares(&settings, BATCHES, |_, _| ()).expect_err("a panic");
    }
    let _worker = server.worker("b", "");
    let mut results = Vec::new();
    let report = squares(&settings, BATCHES, |_, square| results.push(square)).expect("a run");
    assert_eq!(results, (0..BATCHES).map(|number| number * number).collect::<Vec<_>>());
    assert!(report.resumed >= 50);
    let computed: u64 = report.nodes.values().map(|node| node.batches).sum();
    assert_eq!(report.resumed + computed, BATCHES);
}

#[test]
fn results_that_the_sink_has_not_consumed_stay_committed() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    server.open_gate();
    let settings = cluster(&server.url()).resume(true).build().expect("settings");
    let run = |mut sink: Box<dyn FnMut(u64) -> Result<(), String>>| {
        let mut count = 0;
        squares_into(&settings, BATCHES, move |_| {
            count += 1;
            sink(count)
        })
    };
    {
        let _worker = server.worker("a", "");
        let last = |count| if count == BATCHES { Err("no room".to_owned()) } else { Ok(()) };
        let error = run(Box::new(last)).expect_err("the sink fails");
        assert!(matches!(error, ClusterError::Sink { batch, .. } if batch == BATCHES - 1));
    }
    // There is no worker: nothing is computed again.
    let report = run(Box::new(|_| Ok(()))).expect("a run");
    assert_eq!((report.resumed, report.results), (BATCHES, BATCHES));
}

/// Kills a coordinator while batches are outstanding, and runs the job again.
fn run_after_a_killed_coordinator(resume: bool) -> Option<ClusterReport> {
    let server = Server::start(JETSTREAM, "")?;
    let _worker = server.worker("a", "");
    let coordinator = server.coordinator_with(if resume { "resume" } else { "begin" });
    let delivered = || server.read("delivered")?.parse::<u64>().ok();
    until("the results before the gate", || delivered().filter(|count| *count == GATE));
    // The only worker is in the middle of a batch.
    server.wait_for_start("a", Some(GATE));
    drop(coordinator);
    // The batches that are computed from now on leave new notes.
    for number in 0..GATE {
        std::fs::remove_file(server.note(&format!("started-a-{number}"))).expect("a note");
    }
    server.open_gate();
    let settings = cluster(&server.url()).resume(resume).build().expect("settings");
    let mut results = Vec::new();
    // The server may not have noticed yet that the first coordinator is gone.
    let report = until("the lock of the job", || {
        results.clear();
        match squares(&settings, BATCHES, |_, square| results.push(square)) {
            Err(ClusterError::AlreadyRunning { .. }) => None,
            ended => Some(ended.expect("a run")),
        }
    });
    assert_eq!(results, (0..BATCHES).map(|number| number * number).collect::<Vec<_>>());
    let computed: u64 = report.nodes.values().map(|node| node.batches).sum();
    assert_eq!(report.resumed + computed, BATCHES);
    let again = (0..GATE).filter(|number| server.note(&format!("started-a-{number}")).exists());
    assert_eq!(again.count() as u64, if resume { 0 } else { GATE });
    Some(report)
}

#[test]
fn the_run_of_a_killed_coordinator_is_resumed() {
    let Some(report) = run_after_a_killed_coordinator(true) else { return };
    assert!(report.resumed >= GATE);
}

#[test]
fn the_run_after_a_killed_coordinator_is_clean() {
    let Some(report) = run_after_a_killed_coordinator(false) else { return };
    assert_eq!(report.resumed, 0);
}
