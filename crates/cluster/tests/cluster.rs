//! Runs on a real server with worker processes: results once and in order, and what a pipeline can do on a pool.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(target_os = "linux")]

mod common;

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use common::roles::{cluster, many_stages, run_batches, run_with, squares, squares_in_any_order};
use common::{BATCHES, GATE, JETSTREAM, Server, until};
use heist::CancelToken;
use heist::pipeline::{Pipeline, PipelineError};
use heist_cluster::{Cluster, ClusterError, ClusterReport, Role, RunOn};

#[test]
fn results_come_once_and_in_order() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut workers = [server.worker("a", ""), server.worker("b", "")];
    let report = run_with(cluster(&server.url()), || {
        // Both of them share what is outstanding, although either could hold all of it.
        server.wait_for_start("a", None);
        server.wait_for_start("b", None);
        server.open_gate();
    });
    assert_eq!(report.nodes.values().map(|node| node.batches).sum::<u64>(), BATCHES);
    assert!(workers.iter_mut().all(|worker| worker.ends_well()));
}

#[test]
fn without_order_results_do_not_wait_for_each_other() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let variables = [("HEIST_TEST_STEP", "4"), ("HEIST_CLUSTER_THREADS", "24")];
    let _worker = server.worker_at(&server.url(), "a", &variables);
    let gates = BATCHES / 4;
    (2..gates).for_each(|gate| server.open_gate_number(gate));
    let settings = cluster(&server.url()).build().expect("settings");
    let mut results = Vec::new();
    let report = squares_in_any_order(&settings, BATCHES, |square| {
        results.push(square);
        // These are outstanding until all others that may be in flight beside them have come.
        if results.len() as u64 == BATCHES - 4 {
            assert!((4..8_u64).all(|number| !results.contains(&(number * number))));
            server.open_gate_number(1);
        }
    });
    assert_eq!(report.expect("a run").results, BATCHES);
    results.sort_unstable();
    assert_eq!(results, (0..BATCHES).map(|number| number * number).collect::<Vec<_>>());
}

#[test]
fn what_is_in_flight_is_bounded_in_bytes() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let by = |role| {
        let settings = cluster(&server.url()).role(role).bytes(10_000);
        settings.build().expect("settings")
    };
    let (coordinator, worker) = (by(Role::Coordinator), by(Role::Worker));
    let taken = AtomicU64::new(0);
    let run = |settings: &Cluster, items: u64| {
        let source = (0..items).map(|_| {
            taken.fetch_add(1, Ordering::SeqCst);
            "x".repeat(1_000)
        });
        let pipeline = Pipeline::new(source).batch(1).in_flight(100);
        let mut sum = 0;
        let report = pipeline
            .map(|text: String| text.len())
            .run_on(settings, "bytes", |length| sum += length);
        (report.expect("a run"), sum)
    };
    thread::scope(|scope| {
        let running = scope.spawn(|| run(&coordinator, 200));
        // Nine batches fit, and the tenth waits.
        until("the tenth item", || (taken.load(Ordering::SeqCst) >= 10).then_some(()));
        let serving = scope.spawn(|| run(&worker, 0));
        let (report, sum) = running.join().expect("no panic");
        serving.join().expect("no panic");
        assert_eq!((report.results, sum), (200, 200_000));
        assert!((9_000..=10_000).contains(&report.largest_bytes), "{}", report.largest_bytes);
        assert!(report.largest_in_flight < 100, "{}", report.largest_in_flight);
    });
}

#[test]
fn batches_that_are_not_started_are_given_back() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    // Batches are so long that none is started soon.
    let _worker = server.worker_at(&server.url(), "a", &[("HEIST_TEST_MILLIS", "10")]);
    let settings = cluster(&server.url()).lease(Duration::from_secs(600));
    let mut observer = cluster(&server.url()).build().expect("settings").observe().expect("a link");
    let mut other = None;
    let report = run_batches(settings, GATE + 2, || {
        server.wait_for_start("a", Some(GATE));
        // It has started one of the last two batches, and holds the other.
        until("a worker with both", || {
            let job = observer.status().ok()?.jobs.pop()?;
            job.workers.iter().any(|worker| worker.held == 2).then_some(())
        });
        other = Some(server.worker("b", ""));
        server.wait_for_start("b", None);
        until("a batch that was given back", || {
            let job = observer.status().ok()?.jobs.pop()?;
            (job.report.given_back > 0).then_some(())
        });
        server.open_gate();
    });
    assert!(report.given_back > 0);
}

#[test]
fn a_failure_names_stage_batch_and_node() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let by = |role| cluster(&server.url()).role(role).node("left").build().expect("settings");
    let (coordinator, worker) = (by(Role::Coordinator), by(Role::Worker));
    let run = |settings: &Cluster, items: u64| {
        let checked = |number: u64| if number == 7 { Err("odd") } else { Ok(number) };
        let pipeline = Pipeline::new(0..items).batch(2).map(|number| number).try_map(checked);
        pipeline.ordered().run_on(settings, "failing", |_| ())
    };
    thread::scope(|scope| {
        scope.spawn(|| run(&worker, 0).expect("the end of the run"));
        let error = run(&coordinator, 20).expect_err("a failure");
        assert_eq!(error.to_string(), "stage 2 failed at item 7 (batch 3) on node left: odd");
    });
}

#[test]
fn a_panic_names_stage_batch_and_node() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _worker = server.worker("left", "panic=10");
    let settings = cluster(&server.url()).build().expect("settings");
    let mut count = 0;
    let error = squares(&settings, BATCHES, |_, _| count += 1).expect_err("a panic");
    assert_eq!(
        error.to_string(),
        "stage 1 panicked at item 10 (batch 10) on node left: no such number"
    );
    assert_eq!(count, 10);
}

#[test]
fn stages_filter_expand_keep_state_and_have_policies() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _workers = [server.worker("a", ""), server.worker("b", "")];
    let settings = cluster(&server.url()).build().expect("settings");
    let (results, report) = many_stages(&settings).expect("a run");
    let even = (0..100).filter(|number| number % 2 == 0);
    let expanded = even.flat_map(|number| [number, number + 1_000]);
    let expected: Vec<_> =
        expanded.filter(|number| number % 50 != 0).map(|number| (number, true)).collect();
    assert_eq!(results, expected);
    // Of 0, 50, 1000 and 1050, in the batches whose results were delivered.
    assert_eq!((report.skipped, report.retried), (4, 8));
}

#[test]
fn a_worker_without_work_gets_copies() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _worker = server.worker("a", "");
    let mut other = None;
    // Nothing is delivered again because of its lease: only a copy lets the other worker start this batch.
    let settings = cluster(&server.url()).lease(Duration::from_secs(600));
    let report = run_batches(settings, GATE + 1, || {
        server.wait_for_start("a", Some(GATE));
        other = Some(server.worker("b", ""));
        server.wait_for_start("b", Some(GATE));
        server.open_gate();
    });
    assert_eq!(report.copies, 1);
}

#[test]
fn a_worker_that_stays_serves_the_next_run() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    server.open_gate();
    let mut worker = server.worker_at(&server.url(), "a", &[("HEIST_CLUSTER_STAY", "1")]);
    for _ in 0..3 {
        let report = run_with(cluster(&server.url()), || ());
        assert_eq!(report.nodes.keys().collect::<Vec<_>>(), ["a"]);
    }
    worker.signal(libc::SIGTERM);
    assert!(worker.ends_well());
}

#[test]
fn sigterm_drains_a_worker() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut drained = server.worker("a", "");
    let mut other = None;
    let report = run_with(cluster(&server.url()), || {
        server.wait_for_start("a", Some(GATE));
        drained.signal(libc::SIGTERM);
        server.open_gate();
        assert!(drained.ends_well());
        other = Some(server.worker("b", ""));
    });
    // What it had not started is for the other one. It may have done everything before it has noticed the signal.
    assert!(report.nodes["a"].batches >= BATCHES || report.nodes.contains_key("b"));
}

#[test]
fn sigterm_ends_a_process_that_does_not_serve_any_more() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    server.open_gate();
    let mut worker = server.worker_at(&server.url(), "a", &[("HEIST_TEST_LINGER", "1")]);
    run_with(cluster(&server.url()), || ());
    until("the end of the call", || server.read("served"));
    worker.signal(libc::SIGTERM);
    let status = until("the end of the process", || worker.0.try_wait().expect("a child"));
    assert_eq!(status.signal(), Some(libc::SIGTERM));
}

#[test]
fn a_run_may_be_called_in_a_runtime() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    server.open_gate();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let _worker = server.worker("a", "");
    runtime.block_on(async { run_with(cluster(&server.url()), || ()) });
    for role in [Role::Coordinator, Role::Worker] {
        let settings = cluster("nats://127.0.0.1:1").role(role).build().expect("settings");
        let error = runtime.block_on(async { squares(&settings, 1, |_, _| ()) });
        assert!(matches!(error, Err(ClusterError::Unreachable { .. })), "{error:?}");
    }
}

#[test]
fn a_token_cancels_a_run() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let settings = cluster(&server.url()).build().expect("settings");
    let token = CancelToken::new();
    // There is no worker: the run would wait for ever.
    let numbers = (0_u64..).inspect(|number| {
        if *number == 10 {
            token.cancel();
        }
    });
    let run =
        Pipeline::new(numbers).batch(1).cancel_on(&token).run_on(&settings, "endless", |_| ());
    assert!(matches!(run, Err(ClusterError::Pipeline(PipelineError::Cancelled { .. }))));
}

/// Runs a batch of very many items, each of which takes a moment. Returns how many have been computed in this process.
fn long_batch(
    settings: &Cluster,
    token: &CancelToken,
    computed: &AtomicU64,
) -> Result<ClusterReport, ClusterError> {
    let items = Pipeline::new(0..LONG).batch(LONG as usize).cancel_on(token);
    let stage = |number: u64| {
        computed.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(1));
        number
    };
    items.map(stage).run_on(settings, "long", |_| panic!("a result"))
}

/// The items of a batch that would take longer than a test may.
const LONG: u64 = 300_000;

#[test]
fn a_token_reaches_a_worker_in_a_batch() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let by = |role| cluster(&server.url()).role(role).build().expect("settings");
    let (coordinator, worker) = (by(Role::Coordinator), by(Role::Worker));
    let (token, unused) = (CancelToken::new(), CancelToken::new());
    let (computed, none) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let serving = scope.spawn(|| long_batch(&worker, &unused, &computed));
        let running = scope.spawn(|| long_batch(&coordinator, &token, &none));
        until("an item", || (computed.load(Ordering::SeqCst) > 0).then_some(()));
        token.cancel();
        let run = running.join().expect("no panic");
        assert!(matches!(run, Err(ClusterError::Pipeline(PipelineError::Cancelled { .. }))));
        serving.join().expect("no panic").expect("the end of the run");
    });
    assert!(computed.load(Ordering::SeqCst) < LONG);
}
