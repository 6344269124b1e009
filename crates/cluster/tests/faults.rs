//! Workers, servers and coordinators that die, hang and come back while batches are outstanding.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::thread;
use std::time::Duration;

use common::roles::{cluster, run_batches, run_with, squares};
use common::{BATCHES, GATE, IN_FLIGHT, JETSTREAM, Server, until};
use heist_cluster::{ClusterError, ClusterReport, Role, Storage};

#[test]
fn a_killed_worker_loses_nothing() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut workers = vec![server.worker("a", "")];
    let report = run_with(cluster(&server.url()), || {
        server.wait_for_start("a", Some(GATE));
        workers.clear();
        server.open_gate();
        workers.push(server.worker("b", ""));
    });
    // The only worker was killed in the middle of a batch.
    assert!(report.redelivered + report.resent > 0);
    assert_eq!(report.nodes.keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_stopped_worker_loses_its_lease() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let stopped = server.worker("a", "");
    let mut other = None;
    let report = run_with(cluster(&server.url()), || {
        server.wait_for_start("a", Some(GATE));
        stopped.stop();
        server.open_gate();
        other = Some(server.worker("b", ""));
    });
    assert!(report.redelivered + report.resent > 0);
    assert_eq!(report.nodes.keys().collect::<Vec<_>>(), ["a", "b"]);
}

/// Kills the server while batches are outstanding, and starts it again.
fn run_with_killed_server(storage: Storage) -> Option<ClusterReport> {
    let mut server = Server::start(JETSTREAM, "")?;
    let _worker = server.worker("a", "");
    let mut other = None;
    let settings = cluster(&server.url()).storage(storage);
    let report = run_with(settings, || {
        server.wait_for_start("a", Some(GATE));
        server.kill();
        server.run();
        // It knows the second server only. So that one and the coordinator are connected, and it has batches, before any that is
        // outstanding can end.
        other = Some(server.worker("b", ""));
        server.wait_for_start("b", None);
        server.open_gate();
    });
    assert!(report.reconnects > 0);
    Some(report)
}

#[test]
fn a_killed_server_is_made_whole_again() {
    let Some(report) = run_with_killed_server(Storage::Memory) else { return };
    assert!(report.resent > 0);
}

#[test]
fn a_killed_server_with_files_goes_on() {
    run_with_killed_server(Storage::File);
}

#[test]
fn a_poison_batch_is_named_with_its_nodes() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let settings = cluster(&server.url()).attempts(2).build().expect("settings");
    // It is the only batch: no other one can be started too often, however slow the machine is.
    let run = || squares(&settings, 1, |_, _| panic!("a result"));
    let error = server.with_workers(&["a", "b", "c"], "abort=0", run).expect_err("poison");
    let ClusterError::Poison { job, batch: 0, nodes } = &error else { panic!("{error}") };
    assert_eq!(job, "squares");
    assert!(nodes.len() >= 2, "{nodes:?}");
    assert!(nodes.iter().all(|node| ["a", "b", "c"].contains(&node.as_str())), "{nodes:?}");
    let named = format!(
        "batch 0 of the job squares was lost by every node that has started it ({})",
        nodes.join(", ")
    );
    assert!(error.to_string().starts_with(&named), "{error}");
}

#[test]
fn a_second_coordinator_is_refused() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut workers = vec![server.worker("a", "")];
    // All that is left is in flight: no batch that is sent later would show that the queue is gone.
    let batches = GATE + IN_FLIGHT as u64 / 2;
    run_batches(cluster(&server.url()), batches, || {
        server.wait_for_start("a", Some(GATE));
        let second = cluster(&server.url()).build().expect("settings");
        let error = squares(&second, BATCHES, |_, _| ()).expect_err("a second coordinator");
        assert!(matches!(error, ClusterError::AlreadyRunning { .. }), "{error}");
        // The queue is still there for another worker.
        workers.clear();
        server.open_gate();
        workers.push(server.worker("b", ""));
    });
}

#[test]
fn a_coordinator_that_has_lost_the_job_ends() {
    let Some(mut server) = Server::start(JETSTREAM, "") else { return };
    let mut workers = vec![server.worker("a", "")];
    let earlier = server.coordinator();
    server.wait_for_start("a", Some(GATE));
    earlier.stop();
    workers.clear();
    // The server counts from 1 again, and no connection says that the first coordinator is there.
    server.kill();
    fs::remove_dir_all(server.note("data")).expect("the files of the server");
    server.run();
    workers.push(server.worker("b", ""));
    run_with(cluster(&server.url()), || {
        server.wait_for_start("b", Some(GATE));
        earlier.signal(libc::SIGCONT);
        let ended = until("the end of the first coordinator", || server.read("ended"));
        assert!(ended.contains("has a coordinator already"), "{ended}");
        // The queue is still there for another worker.
        workers.clear();
        server.open_gate();
        workers.push(server.worker("c", ""));
    });
}

#[test]
fn a_server_that_stays_away_ends_the_run() {
    let Some(mut server) = Server::start(JETSTREAM, "") else { return };
    let _worker = server.worker("a", "");
    let patience = Duration::from_secs(3);
    let settings = cluster(&server.url()).patience(patience).build().expect("settings");
    let mut count = 0;
    let error = squares(&settings, BATCHES, |_, _| {
        count += 1;
        if count == GATE {
            server.wait_for_start("a", Some(GATE));
            server.kill();
        }
    });
    assert!(matches!(error, Err(ClusterError::Lost { .. })), "{error:?}");
    // Fewer if the server has not answered for that long before.
    assert!(count <= GATE);
}

#[test]
fn a_worker_that_has_missed_the_end_ends() {
    let Some(mut server) = Server::start(JETSTREAM, "") else { return };
    let mut missed = server.worker("a", "");
    let mut other = None;
    run_with(cluster(&server.url()).storage(Storage::File), || {
        server.wait_for_start("a", Some(GATE));
        missed.stop();
        // What the coordinator says from now on is not kept for a connection that is gone.
        server.kill();
        server.run();
        server.open_gate();
        other = Some(server.worker("b", ""));
    });
    missed.signal(libc::SIGCONT);
    assert!(missed.ends_well());
}

#[test]
fn a_worker_without_a_server_can_be_drained() {
    let Some(mut server) = Server::start(JETSTREAM, "") else { return };
    let mut worker = server.worker("a", "");
    let patience = Duration::from_secs(1);
    let settings = cluster(&server.url()).patience(patience).build().expect("settings");
    let error = squares(&settings, BATCHES, |number, _| {
        if number + 1 == GATE {
            server.wait_for_start("a", Some(GATE));
            server.kill();
        }
    });
    assert!(matches!(error, Err(ClusterError::Lost { .. })), "{error:?}");
    worker.signal(libc::SIGTERM);
    server.open_gate();
    assert!(worker.ends_well());
}

#[test]
fn a_worker_without_a_server_ends_after_a_while() {
    let Some(mut server) = Server::start(JETSTREAM, "") else { return };
    let settings = cluster(&server.url()).role(Role::Worker).wait(Duration::from_secs(4));
    let settings = settings.build().expect("settings");
    let error = thread::scope(|scope| {
        let worker = scope.spawn(|| squares(&settings, 0, |_, _| ()));
        server.kill();
        worker.join().expect("no panic")
    });
    let reachable = !matches!(error, Err(ClusterError::Unreachable { .. }));
    assert!(!reachable || matches!(error, Err(ClusterError::NoCoordinator { .. })), "{error:?}");
}
