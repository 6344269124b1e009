//! Servers and nodes that refuse or are refused: errors that say what to do, and the permissions that are enough.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(target_os = "linux")]

mod common;

use std::thread;
use std::time::Duration;

use common::roles::{cluster, run_with, squares};
use common::{JETSTREAM, Server};
use heist::CancelToken;
use heist::pipeline::Pipeline;
use heist_cluster::{Cluster, ClusterError, Role, RunOn};

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

#[test]
fn other_types_are_refused() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let coordinator = cluster(&server.url()).build().expect("settings");
    let worker = cluster(&server.url()).role(Role::Worker).build().expect("settings");
    let token = CancelToken::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let run = Pipeline::new(0..1_u64).cancel_on(&token);
            run.run_on(&coordinator, "types", |_| ()).expect_err("no worker")
        });
        let error = Pipeline::new(0..0_u32).run_on(&worker, "types", |_| ());
        token.cancel();
        let error = error.expect_err("another type");
        assert!(matches!(error, ClusterError::Mismatch { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains("items u64") && said.contains("items u32"), "{said}");
    });
}

#[test]
fn results_above_the_limit_are_refused() {
    let config = "jetstream: {}\nmax_payload: 2000";
    let Some(server) = Server::start(&[], config) else { return };
    let by = |role| cluster(&server.url()).role(role).node("left").build().expect("settings");
    let (coordinator, worker) = (by(Role::Coordinator), by(Role::Worker));
    let run = |settings: &Cluster, items: usize| {
        let pipeline = Pipeline::new(0..items).batch(1).map(|number| "x".repeat(number * 1_000));
        pipeline.ordered().run_on(settings, "results", |_| ())
    };
    thread::scope(|scope| {
        scope.spawn(|| run(&worker, 0).expect("the end of the run"));
        let error = run(&coordinator, 4).expect_err("a result above the limit");
        let ClusterError::ResultTooLarge { batch: 2, node, bytes, limit: 2000 } = &error else {
            panic!("{error}");
        };
        assert!(node == "left" && *bytes > 2_000, "{error}");
        assert!(error.to_string().contains("max_payload"), "{error}");
    });
}

#[test]
fn an_account_without_jetstream_is_named() {
    let config = "jetstream: {}\naccounts { A { users = [{user: left, password: l}] } }";
    let Some(server) = Server::start(&[], config) else { return };
    for role in [Role::Coordinator, Role::Worker] {
        let settings = cluster(&server.url_of("left:l")).role(role).build().expect("settings");
        let error = squares(&settings, 1, |_, _| ());
        assert!(matches!(error, Err(ClusterError::NoJetStream { .. })), "{error:?}");
    }
}

/// Those that docs/CLUSTER.md lists.
#[test]
fn few_permissions_are_enough() {
    let users = r#"jetstream: {}
        authorization { users = [
            {user: left, password: l, permissions: {
                publish: ["heist.>", "$JS.API.>", "$JS.ACK.>", "_INBOX.>"], subscribe: ["heist.>", "_INBOX.>"]}},
            {user: right, password: r, permissions: {
                publish: ["heist.>", "$JS.API.INFO", "$JS.API.CONSUMER.MSG.NEXT.>", "$JS.API.DIRECT.GET.HEIST-LOCKS.>", "$JS.ACK.>"],
                subscribe: ["heist.>", "_INBOX.>"]}} ] }"#;
    let Some(server) = Server::start(&[], users) else { return };
    server.open_gate();
    let _worker = server.worker_at(&server.url_of("right:r"), "a", &[]);
    let report = run_with(cluster(&server.url_of("left:l")).resume(true), || ());
    assert_eq!(report.nodes.keys().collect::<Vec<_>>(), ["a"]);
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
fn bad_input_has_an_error_that_says_what_to_do() {
    let roles = [Role::Coordinator, Role::Worker];
    let fails = |url: &str, role| {
        let settings = cluster(url).role(role).build().expect("settings");
        squares(&settings, 1, |_, _| ()).expect_err("bad input")
    };
    for role in roles {
        let error = fails("nats://127.0.0.1:1", role);
        assert!(matches!(error, ClusterError::Unreachable { .. }), "{error}");
    }
    let Some(server) = Server::start(&[], "") else { return };
    for role in roles {
        let error = fails(&server.url(), role);
        assert!(matches!(error, ClusterError::NoJetStream { .. }), "{error}");
        assert!(error.to_string().contains("start it with `-js`"), "{error}");
    }

    let users = "jetstream: {}\nmax_payload: 2000\nauthorization { users = [ \
        {user: all, password: right}, \
        {user: few, password: right, permissions: {publish: [\"heist.>\"]}}, \
        {user: none, password: right, permissions: {publish: [\"other.>\"]}} ] }";
    let Some(server) = Server::start(&[], users) else { return };
    for role in roles {
        let error = fails(&server.url_of("all:wrong"), role);
        assert!(matches!(error, ClusterError::Credentials { .. }), "{error}");
        assert!(!error.to_string().contains("wrong@"), "{error}");
        let error = fails(&server.url_of("none:right"), role);
        assert!(matches!(error, ClusterError::Permission { .. }), "{error}");
    }
    let error = fails(&server.url_of("few:right"), Role::Coordinator);
    assert!(matches!(error, ClusterError::Permission { .. }), "{error}");
    assert!(error.to_string().contains("docs/CLUSTER.md"), "{error}");
    let by = |user: &str| cluster(&server.url_of(user)).build().expect("settings");
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
