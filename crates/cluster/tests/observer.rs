//! What others can see of a run while it goes on, and how they have workers leave.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(target_os = "linux")]

mod common;

use std::thread;

use common::roles::{cluster, run_with, squares};
use common::{BATCHES, GATE, IN_FLIGHT, JETSTREAM, Server, until};
use heist_cluster::{ClusterError, JobStatus, Observer, Role};

/// Waits until the status of the only run fulfils a condition.
fn wait_for(observer: &mut Observer, condition: impl Fn(&JobStatus) -> bool) -> JobStatus {
    until("the status of the run", || {
        let status = observer.status().expect("a status");
        status.jobs.into_iter().next().filter(&condition)
    })
}

#[test]
fn a_run_is_seen_while_it_goes_on() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _worker = server.worker("a", "");
    let settings = cluster(&server.url()).build().expect("settings");
    let mut observer = settings.observe().expect("a connection");
    until("a worker that waits", || {
        let status = observer.status().expect("a status");
        assert!(status.jobs.is_empty());
        status.waiting.into_iter().find(|worker| worker.node == "a" && worker.threads == 1)
    });
    run_with(cluster(&server.url()).node("c"), || {
        server.wait_for_start("a", Some(GATE));
        let job = wait_for(&mut observer, |job| {
            let has_some = job.workers.iter().any(|worker| worker.node == "a" && worker.held > 0);
            has_some && job.outstanding == IN_FLIGHT - 1
        });
        assert_eq!((job.job.as_str(), job.coordinator.as_str()), ("squares", "c"));
        // The sink has returned from all batches before the gate but the last one, and the rest is in flight.
        assert_eq!(job.report.batches, GATE);
        assert_eq!(job.report.nodes["a"].batches, GATE);
        let text = job.prometheus();
        for line in [
            format!("heist_cluster_node_batches_total{{job=\"squares\",node=\"a\"}} {GATE}"),
            format!("heist_cluster_outstanding{{job=\"squares\"}} {}", IN_FLIGHT - 1),
            "heist_cluster_node_threads{job=\"squares\",node=\"a\"} 1".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        server.open_gate();
    });
    assert!(observer.status().expect("a status").jobs.is_empty());
}

#[test]
fn one_worker_leaves_and_the_other_goes_on() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let (mut leaving, mut staying) = (server.worker("a", ""), server.worker("b", ""));
    let mut observer = cluster(&server.url()).build().expect("settings").observe().expect("a link");
    let report = run_with(cluster(&server.url()), || {
        server.wait_for_start("a", None);
        server.wait_for_start("b", None);
        assert!(observer.drain(Some("nobody")).expect("an answer").is_empty());
        let left = observer.drain(Some("a")).expect("an answer");
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].node.as_str(), left[0].job.as_str()), ("a", "squares"));
        assert!(left[0].held > 0);
        server.open_gate();
        assert!(leaving.ends_well());
        wait_for(&mut observer, |job| job.workers.iter().all(|worker| worker.node == "b"));
    });
    assert_eq!(report.nodes.values().map(|node| node.batches).sum::<u64>(), BATCHES);
    assert!(staying.ends_well());
}

#[test]
fn workers_that_wait_leave() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut workers = [server.worker("a", ""), server.worker("b", "")];
    let mut observer = cluster(&server.url()).build().expect("settings").observe().expect("a link");
    until("two workers", || {
        (observer.status().expect("a status").waiting.len() == 2).then_some(())
    });
    assert_eq!(observer.drain(None).expect("an answer").len(), 2);
    assert!(workers.iter_mut().all(|worker| worker.ends_well()));
    until("no worker", || observer.status().expect("a status").waiting.is_empty().then_some(()));
}

#[test]
fn the_permissions_of_a_worker_are_enough_to_be_seen() {
    let users = r#"jetstream: {}
        authorization { users = [
            {user: left, password: l},
            {user: right, password: r, permissions: {
                publish: ["heist.>", "$JS.API.CONSUMER.MSG.NEXT.>", "$JS.API.DIRECT.GET.HEIST-LOCKS.>", "$JS.ACK.>"],
                subscribe: ["heist.>", "_INBOX.>"]}} ] }"#;
    let Some(server) = Server::start(&[], users) else { return };
    let mut worker = server.worker_at(&server.url_of("right:r"), "a", &[]);
    let settings = cluster(&server.url_of("right:r")).build().expect("settings");
    let mut observer = settings.observe().expect("a connection");
    until("a worker that waits", || observer.status().expect("a status").waiting.pop());
    assert_eq!(observer.drain(None).expect("an answer").len(), 1);
    assert!(worker.ends_well());
}

#[test]
fn a_worker_without_its_coordinator_is_shown_as_waiting() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _worker = server.worker("a", "");
    let coordinator = server.coordinator();
    server.wait_for_start("a", Some(GATE));
    let settings = cluster(&server.url()).build().expect("settings");
    let mut observer = settings.observe().expect("a connection");
    wait_for(&mut observer, |job| job.workers.len() == 1);
    drop(coordinator);
    until("a worker that waits", || observer.status().expect("a status").waiting.pop());
}

#[test]
fn an_observer_in_a_runtime_and_without_a_server() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let unreachable = cluster("nats://127.0.0.1:1").build().expect("settings");
    let error = runtime.block_on(async { unreachable.observe().map(drop) });
    assert!(matches!(error, Err(ClusterError::Unreachable { .. })), "{error:?}");
    let Some(mut server) = Server::start(JETSTREAM, "") else { return };
    let settings = cluster(&server.url()).build().expect("settings");
    let mut observer = runtime.block_on(async { settings.observe().expect("a connection") });
    assert!(runtime.block_on(async { observer.status().expect("a status").jobs.is_empty() }));
    server.kill();
    let error = until("the loss of the server", || observer.status().err());
    assert!(matches!(error, ClusterError::Unreachable { .. }), "{error}");
    server.run();
    until("the server", || observer.status().ok());
}

#[test]
fn a_worker_that_was_drained_serves_no_further_run() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let settings = cluster(&server.url()).role(Role::Worker).build().expect("settings");
    let mut observer = settings.observe().expect("a connection");
    thread::scope(|scope| {
        let serving = scope.spawn(|| squares(&settings, 0, |_, _| ()));
        until("a worker", || observer.status().expect("a status").waiting.pop());
        assert_eq!(observer.drain(None).expect("an answer").len(), 1);
        serving.join().expect("no panic").expect("the end of the call");
    });
    squares(&settings, 0, |_, _| ()).expect("the end of the call");
}
