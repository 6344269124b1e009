//! Runs on a real server with worker processes: results once and in order, whatever dies, and errors that say what to do.

mod common;

use common::{Server, cluster, squares, until, worker};
use heist::CancelToken;
use heist::pipeline::{Pipeline, PipelineError};
use heist_cluster::{Cluster, ClusterError, Role, RunOn};

const JETSTREAM: &[&str] = &["-js"];
const BATCHES: u64 = 200;

/// Not a test by itself: the other tests start this program again with the role of a worker.
#[test]
fn serve_as_worker() {
    let cluster = Cluster::from_env().expect("settings");
    if cluster.role() == Role::Worker {
        squares(&cluster, 0, |_, _| ()).expect("a run that ends");
    }
}

/// Runs the job, and checks that every result comes once and in order. `fault` is called in the middle, while batches are out.
fn run_with(server: &Server, mut fault: impl FnMut()) -> heist_cluster::ClusterReport {
    let settings = cluster(&server.url()).build().expect("settings");
    let mut count = 0;
    let report = squares(&settings, BATCHES, |number, square| {
        assert_eq!(square, number * number);
        count += 1;
        if count == BATCHES / 4 {
            // The source is 16 batches ahead, so there is outstanding work.
            fault();
        }
    });
    assert_eq!(count, BATCHES);
    let report = report.expect("a run");
    assert_eq!((report.batches, report.results), (BATCHES, BATCHES));
    assert!(report.largest_in_flight <= 16);
    report
}

#[test]
fn results_come_once_and_in_order() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut workers = [worker(&server, "a", ""), worker(&server, "b", "")];
    let report = run_with(&server, || ());
    assert_eq!(report.nodes.values().map(|node| node.batches).sum::<u64>(), BATCHES);
    for worker in &mut workers {
        let status = until("the end of a worker", || worker.0.try_wait().expect("a child"));
        assert!(status.success());
    }
}

#[test]
fn a_killed_worker_loses_nothing() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut workers = vec![worker(&server, "a", "")];
    let report = run_with(&server, || {
        // The only worker: it has all that is being computed.
        workers.clear();
        workers.push(worker(&server, "b", ""));
    });
    assert!(report.redelivered + report.resent > 0);
    assert_eq!(report.nodes.len(), 2);
}

#[test]
fn a_killed_server_is_made_whole_again() {
    let Some(mut server) = Server::start(JETSTREAM, "") else { return };
    let _worker = worker(&server, "a", "");
    let settings = cluster(&server.url()).build().expect("settings");
    let mut results = Vec::new();
    let report = squares(&settings, BATCHES, |number, square| {
        results.push(square);
        if number == BATCHES / 4 {
            server.kill();
            server.run();
        }
    });
    let report = report.expect("a run");
    assert_eq!(results, (0..BATCHES).map(|number| number * number).collect::<Vec<_>>());
    assert!(report.reconnects > 0 && report.resent > 0);
}

#[test]
fn a_stopped_worker_loses_its_lease() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let stopped = worker(&server, "a", "");
    let mut other = None;
    let report = run_with(&server, || {
        stopped.signal(libc::SIGSTOP);
        other = Some(worker(&server, "b", ""));
    });
    assert!(report.redelivered + report.resent > 0);
}

#[test]
fn a_poison_batch_is_named_with_its_nodes() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _workers = ["a", "b", "c", "d"].map(|node| worker(&server, node, "abort=50"));
    let settings = cluster(&server.url()).build().expect("settings");
    let mut count = 0;
    let error = squares(&settings, BATCHES, |_, _| count += 1).expect_err("poison");
    let ClusterError::Poison { batch: 50, nodes, .. } = &error else { panic!("{error}") };
    // A copy of the batch, which is slow, may have killed a further node.
    assert!((2..=3).contains(&nodes.len()), "{nodes:?}");
    assert_eq!(count, 50);
}

#[test]
fn a_panic_names_stage_batch_and_node() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _worker = worker(&server, "left", "panic=50");
    let settings = cluster(&server.url()).build().expect("settings");
    let mut count = 0;
    let error = squares(&settings, BATCHES, |_, _| count += 1).expect_err("a panic");
    assert_eq!(
        error.to_string(),
        "map 1 panicked at item 50 (batch 50) on node left: no such number"
    );
    assert_eq!(count, 50);
}

#[test]
fn a_second_coordinator_is_refused() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _worker = worker(&server, "a", "");
    run_with(&server, || {
        let second = cluster(&server.url()).build().expect("settings");
        let error = squares(&second, BATCHES, |_, _| ()).expect_err("a second coordinator");
        assert!(matches!(error, ClusterError::AlreadyRunning { .. }), "{error}");
    });
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

#[test]
fn sigterm_drains_a_worker() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut drained = worker(&server, "a", "");
    let mut other = None;
    run_with(&server, || {
        drained.signal(libc::SIGTERM);
        other = Some(worker(&server, "b", ""));
        let status = until("the end of the worker", || drained.0.try_wait().expect("a child"));
        assert!(status.success());
    });
}

#[test]
fn a_failed_run_is_resumed() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let settings = cluster(&server.url()).resume(true).build().expect("settings");
    {
        let _worker = worker(&server, "a", "panic=50");
        squares(&settings, BATCHES, |_, _| ()).expect_err("a panic");
    }
    let _worker = worker(&server, "b", "");
    let mut results = Vec::new();
    let report = squares(&settings, BATCHES, |_, square| results.push(square)).expect("a run");
    assert_eq!(results, (0..BATCHES).map(|number| number * number).collect::<Vec<_>>());
    assert!(report.resumed >= 50);
    let computed: u64 = report.nodes.values().map(|node| node.batches).sum();
    assert_eq!(report.resumed + computed, BATCHES);
}

#[test]
fn bad_input_has_an_error_that_says_what_to_do() {
    let unreachable = cluster("nats://127.0.0.1:1").build().expect("settings");
    let error = squares(&unreachable, 1, |_, _| ()).expect_err("no server");
    assert!(matches!(error, ClusterError::Unreachable { .. }), "{error}");

    let Some(server) = Server::start(&[], "") else { return };
    let error = squares(&cluster(&server.url()).build().expect("settings"), 1, |_, _| ());
    assert!(matches!(error, Err(ClusterError::NoJetStream { .. })), "{error:?}");

    let users = "jetstream: {}\nmax_payload: 2000\nauthorization { users = [ \
        {user: all, password: right}, \
        {user: few, password: right, permissions: {publish: [\"heist.>\"]}} ] }";
    let Some(server) = Server::start(&[], users) else { return };
    let by = |user: &str| {
        let url = format!("nats://{user}@127.0.0.1:{}", server.port);
        cluster(&url).build().expect("settings")
    };
    let error = squares(&by("all:wrong"), 1, |_, _| ());
    assert!(matches!(error, Err(ClusterError::Credentials { .. })), "{error:?}");
    let error = squares(&by("few:right"), 1, |_, _| ());
    assert!(matches!(error, Err(ClusterError::Permission { .. })), "{error:?}");
    let large = Pipeline::new(0..10_000_u64).batch(10_000);
    let error = large.run_on(&by("all:right"), "large", |_| ());
    assert!(matches!(error, Err(ClusterError::BatchTooLarge { limit: 2000, .. })), "{error:?}");
}
