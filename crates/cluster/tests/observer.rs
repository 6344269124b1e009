//! What others can see of a run while it goes on, and how they have workers leave.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use common::roles::{cluster, run_with, squares};
use common::{BATCHES, GATE, IN_FLIGHT, JETSTREAM, Server, drain, drain_all, until};
use heist_cluster::{ClusterError, JobStatus, Observer, Role};

/// Waits until the status of the only run fulfils a condition.
fn wait_for(observer: &mut Observer, condition: impl Fn(&JobStatus) -> bool) -> JobStatus {
    until("the status of the run", || {
        let status = observer.status().ok()?;
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
        let status = observer.status().ok()?;
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
    let status = until("a status", || observer.status().ok());
    assert!(status.jobs.is_empty());
}

#[test]
fn one_worker_leaves_and_the_other_goes_on() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let (mut leaving, mut staying) = (server.wide_worker("a"), server.wide_worker("b"));
    let mut observer = cluster(&server.url()).build().expect("settings").observe().expect("a link");
    let report = run_with(cluster(&server.url()), || {
        server.wait_for_start("a", None);
        server.wait_for_start("b", None);
        let nobody = until("an answer", || observer.drain(Some("nobody")).ok());
        assert!(nobody.is_empty());
        let left = drain(&mut observer, "a");
        assert_eq!((left.node.as_str(), left.job.as_str()), ("a", "squares"));
        assert!(left.held > 0);
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
    until("two workers", || (observer.status().ok()?.waiting.len() == 2).then_some(()));
    for worker in &mut workers {
        drain_all(&mut observer, || worker.0.try_wait().expect("a child").is_some());
        assert!(worker.ends_well());
    }
    until("no worker", || observer.status().ok()?.waiting.is_empty().then_some(()));
}

#[test]
fn the_permissions_of_a_worker_are_enough_to_be_seen() {
    let users = r#"jetstream: {}
        authorization { users = [
            {user: left, password: l},
            {user: right, password: r, permissions: {
                publish: ["heist.>", "$JS.API.INFO", "$JS.API.CONSUMER.MSG.NEXT.>", "$JS.API.DIRECT.GET.HEIST-LOCKS.>", "$JS.ACK.>"],
                subscribe: ["heist.>", "_INBOX.>"]}} ] }"#;
    let Some(server) = Server::start(&[], users) else { return };
    let mut worker = server.worker_at(&server.url_of("right:r"), "a", &[]);
    let settings = cluster(&server.url_of("right:r")).build().expect("settings");
    let mut observer = settings.observe().expect("a connection");
    until("a worker that waits", || observer.status().ok()?.waiting.pop());
    drain_all(&mut observer, || worker.0.try_wait().expect("a child").is_some());
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
    until("a worker that waits", || observer.status().ok()?.waiting.pop());
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
    let status = || runtime.block_on(async { observer.status().ok() });
    assert!(until("a status", status).jobs.is_empty());
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
        until("a worker", || observer.status().ok()?.waiting.pop());
        drain_all(&mut observer, || serving.is_finished());
        serving.join().expect("no panic").expect("the end of the call");
    });
    squares(&settings, 0, |_, _| ()).expect("the end of the call");
}

/// Reads a page of HTTP.
fn page(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("a page");
    text
}

#[test]
fn a_page_has_the_counts_while_a_run_goes_on() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _worker = server.worker("a", "");
    // No other test takes a port of this address.
    let address = format!("{}:9464", server.host());
    let settings = cluster(&server.url()).metrics(&address).expect("an address");
    run_with(settings.clone(), || {
        server.wait_for_start("a", Some(GATE));
        let text = page(&address, "/metrics");
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"),
            "{text}"
        );
        let line = format!("heist_cluster_node_batches_total{{job=\"squares\",node=\"a\"}} {GATE}");
        assert!(text.lines().any(|found| found == line), "{text}");
        assert!(page(&address, "/other").starts_with("HTTP/1.1 404 "));
        // A reader that says nothing does not hold up the run.
        let _silent = TcpStream::connect(&address).expect("a connection");
        let second = settings.clone().build().expect("settings");
        let error = squares(&second, 1, |_, _| ()).expect_err("the address is taken");
        assert!(matches!(error, ClusterError::Setting { name: "metrics", .. }), "{error}");
        server.open_gate();
    });
    assert!(TcpStream::connect(&address).is_err());
}

#[test]
fn a_trace_has_the_batches_of_all_nodes() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut workers = vec![server.wide_worker("a")];
    let file = server.note("trace.json");
    let settings = cluster(&server.url()).node("c").trace(&file);
    let report = run_with(settings, || {
        server.wait_for_start("a", Some(GATE));
        // It has computed all batches before this one. What it has started is started again.
        workers.clear();
        workers.push(server.wide_worker("b \"2\""));
        server.open_gate();
    });
    let text = std::fs::read_to_string(&file).expect("a trace");
    let trace: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let of = |kind: &'static str| events.iter().filter(move |event| event["ph"] == kind);
    let processes: Vec<_> = of("M").map(|event| event["args"]["name"].as_str()).collect();
    assert_eq!(processes[0], Some("coordinator c"));
    assert!(
        processes.contains(&Some("a")) && processes.contains(&Some("b \"2\"")),
        "{processes:?}"
    );
    let batches: BTreeSet<_> =
        of("X").map(|event| event["name"].as_str().expect("a name")).collect();
    assert!((0..BATCHES).all(|number| batches.contains(format!("batch {number}").as_str())));
    let tracks: BTreeSet<_> =
        of("X").map(|event| (event["pid"].as_u64(), event["tid"].as_u64())).collect();
    assert!(tracks.len() >= 2, "{tracks:?}");
    assert!(of("C").count() as u64 >= BATCHES);
    let again =
        of("i").filter(|event| event["name"].as_str().expect("a name").contains("again by"));
    assert_eq!(again.count() as u64, report.redelivered);
    assert!(report.redelivered > 0);
}

#[test]
fn a_trace_that_cannot_be_written_is_refused() {
    let settings = cluster("nats://127.0.0.1:1").trace("/no/such/folder/trace.json");
    let error = squares(&settings.build().expect("settings"), 1, |_, _| ()).expect_err("no file");
    assert!(matches!(error, ClusterError::Setting { name: "trace", .. }), "{error}");
}
