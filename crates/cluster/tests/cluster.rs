//! Runs on a real server with worker processes: results once and in order, whatever dies, and errors that say what to do.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use common::{BATCHES, GATE, IN_FLIGHT, Server, cluster, squares, squares_into, until};
use heist::CancelToken;
use heist::pipeline::{Pipeline, PipelineError, Retry, Skip};
use heist_cluster::{Cluster, ClusterBuilder, ClusterError, ClusterReport, Role, RunOn, Storage};

const JETSTREAM: &[&str] = &["-js"];

/// Not a test by itself: the other tests start this program again with the role of a worker.
#[test]
fn serve_as_worker() {
    let cluster = Cluster::from_env().expect("settings");
    if cluster.role() == Role::Worker {
        let served = || match (squares(&cluster, 0, |_, _| ()), &cluster) {
            (Ok(_), _) => Some(()),
            // The server is busy, or is being restarted.
            (Err(ClusterError::Unreachable { .. } | ClusterError::Server { .. }), _) => None,
            // Another job than that of most tests.
            (Err(ClusterError::Mismatch { .. }), cluster) => many_stages(cluster).ok().map(drop),
            (Err(error), _) => panic!("{error}"),
        };
        until("a run", served);
        if std::env::var_os("HEIST_TEST_LINGER").is_some() {
            let folder = std::env::var_os("HEIST_TEST_FOLDER").expect("a folder");
            fs::write(std::path::PathBuf::from(folder).join("served"), "").expect("a file");
            loop {
                thread::park();
            }
        }
    }
}

/// Not a test by itself: the other tests start this program again as a coordinator.
#[test]
fn serve_as_coordinator() {
    let Ok(mode) = std::env::var("HEIST_TEST_COORDINATOR") else { return };
    let folder = std::path::PathBuf::from(std::env::var_os("HEIST_TEST_FOLDER").expect("a folder"));
    // A reader sees a whole note.
    let note = |name: &str, text: String| {
        let part = folder.join(format!("{name}.part"));
        fs::write(&part, text).expect("a file");
        fs::rename(part, folder.join(name)).expect("a file");
    };
    let url = std::env::var("HEIST_CLUSTER_URL").expect("an address");
    let settings = cluster(&url).resume(mode == "resume").build().expect("settings");
    let ended =
        squares(&settings, BATCHES, |number, _| note("delivered", (number + 1).to_string()));
    note("ended", ended.map_or_else(|error| error.to_string(), |_| "well".to_owned()));
}

/// Runs the job, and checks that every result comes once and in order.
///
/// `fault` is called with the result before the gate. Then as many batches are outstanding as may be in flight beside that one.
fn run_with(settings: ClusterBuilder, fault: impl FnMut()) -> ClusterReport {
    run_batches(settings, BATCHES, fault)
}

fn run_batches(settings: ClusterBuilder, batches: u64, mut fault: impl FnMut()) -> ClusterReport {
    let settings = settings.build().expect("settings");
    let mut results = Vec::new();
    let report = squares(&settings, batches, |number, square| {
        results.push(square);
        if number + 1 == GATE {
            fault();
        }
    });
    let report = report.expect("a run");
    assert_eq!(results, (0..batches).map(|number| number * number).collect::<Vec<_>>());
    assert_eq!((report.batches, report.results), (batches, batches));
    assert!(report.largest_in_flight <= IN_FLIGHT);
    report
}

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
    let ClusterError::Poison { batch: 0, nodes, .. } = &error else { panic!("{error}") };
    assert!(nodes.len() >= 2, "{nodes:?}");
    assert!(nodes.iter().all(|node| ["a", "b", "c"].contains(&node.as_str())), "{nodes:?}");
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

#[test]
fn another_version_is_refused() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let coordinator = cluster(&server.url()).version("1").build().expect("settings");
    let worker = cluster(&server.url()).version("2").role(Role::Worker).build().expect("settings");
    let token = CancelToken::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let run = Pipeline::new(0..1_u64).cancel_on(&token).map(|number| number);
            run.run_on(&coordinator, "versions", |_| ()).expect_err("no worker")
        });
        let run = Pipeline::new(0..0_u64).map(|number| number);
        let error = run.run_on(&worker, "versions", |_| ());
        token.cancel();
        let error = error.expect_err("another version");
        assert!(matches!(error, ClusterError::Mismatch { .. }), "{error}");
        assert!(error.to_string().contains(r#"version "1" of the program"#), "{error}");
    });
}

/// Those that docs/CLUSTER.md lists.
#[test]
fn few_permissions_are_enough() {
    let users = r#"jetstream: {}
        authorization { users = [
            {user: left, password: l, permissions: {
                publish: ["heist.>", "$JS.API.>", "$JS.ACK.>", "_INBOX.>"], subscribe: ["heist.>", "_INBOX.>"]}},
            {user: right, password: r, permissions: {
                publish: ["heist.>", "$JS.API.CONSUMER.MSG.NEXT.>", "$JS.API.DIRECT.GET.HEIST-LOCKS.>", "$JS.ACK.>"],
                subscribe: ["heist.>", "_INBOX.>"]}} ] }"#;
    let Some(server) = Server::start(&[], users) else { return };
    server.open_gate();
    let _worker = server.worker_at(&server.url_of("right:r"), "a", &[]);
    let report = run_with(cluster(&server.url_of("left:l")).resume(true), || ());
    assert_eq!(report.nodes.keys().collect::<Vec<_>>(), ["a"]);
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
fn a_server_that_says_nothing_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let url = format!("nats://{}", listener.local_addr().expect("an address"));
    for role in [Role::Coordinator, Role::Worker] {
        let settings = Cluster::builder().url(&url).role(role).build().expect("settings");
        let error = squares(&settings, 1, |_, _| ()).expect_err("no answer");
        assert!(matches!(error, ClusterError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains("HEIST_CLUSTER_URL"), "{error}");
    }
}

#[test]
fn passwords_and_tokens_may_have_any_character() {
    let user = "jetstream: {}\nauthorization { user: left, password: \"p@s:s/w%rd\" }";
    let token = "jetstream: {}\nauthorization { token: \"t@k:n/%\" }";
    for (config, right) in [(user, "left:p%40s%3As%2Fw%25rd"), (token, "t%40k%3An%2F%25")] {
        let Some(server) = Server::start(&[], config) else { return };
        let run = |user: &str| {
            let settings = cluster(&server.url_of(user)).build().expect("settings");
            Pipeline::new(0..0_u64).run_on(&settings, "nothing", |_| ())
        };
        run(right).expect("a run");
        let error = run("left:wrong").expect_err("a wrong password");
        assert!(matches!(error, ClusterError::Credentials { .. }), "{error}");
        assert!(!error.to_string().contains("wrong@"), "{error}");
    }
}

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

#[test]
fn the_run_of_a_killed_coordinator_is_resumed() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _worker = server.worker("a", "");
    let coordinator = server.coordinator();
    let delivered = || server.read("delivered")?.parse::<u64>().ok();
    until("the results before the gate", || delivered().filter(|count| *count == GATE));
    // The only worker is in the middle of a batch.
    server.wait_for_start("a", Some(GATE));
    drop(coordinator);
    server.open_gate();
    let settings = cluster(&server.url()).resume(true).build().expect("settings");
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
    assert!(report.resumed >= GATE);
    let computed: u64 = report.nodes.values().map(|node| node.batches).sum();
    assert_eq!(report.resumed + computed, BATCHES);
}

#[test]
fn the_run_after_a_killed_coordinator_is_clean() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let _worker = server.worker("a", "");
    let coordinator = server.coordinator_with("from the beginning");
    server.wait_for_start("a", Some(GATE));
    drop(coordinator);
    server.open_gate();
    let settings = cluster(&server.url()).build().expect("settings");
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
    assert_eq!((report.batches, report.resumed), (BATCHES, 0));
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

/// Runs a job whose stages filter, expand, have state and fail. Returns its results, too.
fn many_stages(cluster: &Cluster) -> Result<(Vec<(u64, bool)>, ClusterReport), ClusterError> {
    let pipeline = Pipeline::new(0..100_u64)
        .batch(10)
        .filter(|number| number % 2 == 0)
        .flat_map(|number| [number, number + 1_000])
        .try_map(|number| if number % 50 == 0 { Err("no") } else { Ok(number) })
        .on_error(Retry::times(2).backoff(Duration::from_millis(1)))
        .on_error(Skip)
        .map_init(
            || 0_u64,
            |calls, number| {
                *calls += 1;
                (number, *calls > 0)
            },
        )
        .ordered();
    let mut results = Vec::new();
    // The name is that of the other job, because a worker serves one.
    let report = pipeline.run_on(cluster, "squares", |result| results.push(result))?;
    Ok((results, report))
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
    let by = |user: &str| cluster(&server.url_of(user)).build().expect("settings");
    let error = squares(&by("all:wrong"), 1, |_, _| ());
    assert!(matches!(error, Err(ClusterError::Credentials { .. })), "{error:?}");
    let error = squares(&by("few:right"), 1, |_, _| ());
    assert!(matches!(error, Err(ClusterError::Permission { .. })), "{error:?}");
    let large = Pipeline::new(0..10_000_u64).batch(10_000);
    let error = large.run_on(&by("all:right"), "large", |_| ());
    assert!(matches!(error, Err(ClusterError::BatchTooLarge { limit: 2000, .. })), "{error:?}");
}

#[test]
fn a_server_without_room_ends_the_run_at_once() {
    let Some(server) = Server::start(&[], "jetstream { max_memory_store: 64KB }") else { return };
    let settings =
        cluster(&server.url()).patience(Duration::from_secs(3)).build().expect("settings");
    // There is no worker, and more is in flight than there is room for.
    let items = (0..100).map(|_| "x".repeat(10_000));
    let error = Pipeline::new(items).batch(1).in_flight(100).run_on(&settings, "large", |_| ());
    assert!(matches!(error, Err(ClusterError::Limit { .. })), "{error:?}");
}
