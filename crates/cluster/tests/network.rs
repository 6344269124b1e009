//! Networks that delay, lose connections and are partitioned, and servers that share the load, while batches are outstanding.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(target_os = "linux")]

mod common;

use std::net::Ipv4Addr;
use std::time::Duration;

use async_nats::{ServerAddr, jetstream};
use common::proxy::Proxy;
use common::roles::{cluster, empty_run, run_batches, run_with};
use common::{GATE, IN_FLIGHT, JETSTREAM, Server, host, until};
use heist_cluster::{Observer, Storage};

/// Asserts that so many batches are outstanding.
fn assert_outstanding(observer: &mut Observer, batches: usize) {
    until("what is outstanding", || {
        let jobs = observer.status().ok()?.jobs;
        jobs.iter().any(|job| job.outstanding == batches).then_some(())
    });
}

fn observer(server: &Server) -> Observer {
    cluster(&server.url()).build().expect("settings").observe().expect("a connection")
}

#[test]
fn long_ways_change_nothing() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let (left, right) =
        (Proxy::new(server.host(), server.port()), Proxy::new(server.host(), server.port()));
    for proxy in [&left, &right] {
        proxy.delay(Duration::from_millis(20));
    }
    let _worker = server.worker_at(&right.url(), "a", &[]);
    let mut bytes = 0;
    run_with(cluster(&left.url()), || {
        server.wait_for_start("a", Some(GATE));
        assert_outstanding(&mut observer(&server), IN_FLIGHT - 1);
        bytes = right.bytes();
        server.open_gate();
    });
    assert!(right.bytes() > bytes && bytes > 0 && left.bytes() > 0);
}

#[test]
fn cut_connections_are_made_again() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let (left, right) =
        (Proxy::new(server.host(), server.port()), Proxy::new(server.host(), server.port()));
    let _worker = server.worker_at(&right.url(), "a", &[]);
    let report = run_with(cluster(&left.url()), || {
        server.wait_for_start("a", Some(GATE));
        assert_outstanding(&mut observer(&server), IN_FLIGHT - 1);
        for proxy in [&left, &right] {
            let accepted = proxy.accepted();
            proxy.cut();
            proxy.wait_for_connection_after(accepted);
        }
        server.open_gate();
    });
    assert!(report.reconnects > 0);
    assert_eq!(report.nodes.keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_worker_behind_a_partition_loses_its_lease() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let proxy = Proxy::new(server.host(), server.port());
    let _cut_off = server.worker_at(&proxy.url(), "a", &[]);
    let mut other = None;
    // It is the only batch that is left: the other worker has nothing else to start.
    let report = run_batches(cluster(&server.url()), GATE + 1, || {
        server.wait_for_start("a", Some(GATE));
        assert_outstanding(&mut observer(&server), 1);
        proxy.partition(true);
        other = Some(server.worker("b", ""));
        // What the first one has started is started a second time, while nothing of it can be heard.
        server.wait_for_start("b", Some(GATE));
        server.open_gate();
    });
    assert!(report.redelivered + report.resent + report.copies > 0);
    assert!(report.nodes.contains_key("b"));
    assert!(report.nodes.values().map(|node| node.batches).sum::<u64>() == GATE + 1);
}

#[test]
fn a_coordinator_behind_a_partition_connects_again() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let proxy = Proxy::new(server.host(), server.port());
    let _worker = server.worker("a", "");
    let report = run_with(cluster(&proxy.url()), || {
        server.wait_for_start("a", Some(GATE));
        assert_outstanding(&mut observer(&server), IN_FLIGHT - 1);
        let accepted = proxy.accepted();
        proxy.partition(true);
        // It misses the answers to its pings, and tries another connection, which is silent as well.
        proxy.wait_for_connection_after(accepted);
        proxy.partition(false);
        server.open_gate();
    });
    assert!(report.reconnects > 0);
}

/// Three servers that keep the batches together, if the tests are not to be skipped.
fn three_servers() -> Option<Vec<Server>> {
    let routes: Vec<Ipv4Addr> = (0..3).map(|_| host()).collect();
    let urls: Vec<_> = routes.iter().map(|host| format!("nats://{host}:6222")).collect();
    let start = |number: usize| {
        let (host, urls) = (routes[number], urls.join(", "));
        let config = format!(
            "server_name: s{number}\njetstream: {{}}\n\
             cluster {{ name: c, listen: \"{host}:6222\", no_advertise: true, routes: [{urls}] }}"
        );
        Server::start(&[], &config)
    };
    (0..3).map(start).collect()
}

/// Asks one of the servers about the queue of the job.
fn ask<T>(url: &str, question: impl AsyncFnOnce(jetstream::Context) -> Option<T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let servers: Result<Vec<ServerAddr>, _> = url.split(',').map(str::parse).collect();
        let client = async_nats::connect(servers.ok()?).await.ok()?;
        question(jetstream::new(client)).await
    })
}

const QUEUE: &str = "HEIST-Q_squares";

/// Returns the name of the server that leads the queue.
fn leader(url: &str) -> Option<String> {
    ask(url, async |context| {
        let stream = context.get_stream(QUEUE).await.ok()?;
        stream.get_info().await.ok()?.cluster?.leader
    })
}

/// Has the servers elect another leader, unless this one leads.
fn elect(url: &str, wanted: &str) -> Option<()> {
    if leader(url)? == wanted {
        return Some(());
    }
    ask(url, async |context| {
        let subject = format!("STREAM.LEADER.STEPDOWN.{QUEUE}");
        // An older server ignores the wish, and another leader is elected sooner or later.
        let request = serde_json::json!({ "placement": { "preferred": wanted } });
        context.request::<_, _, serde_json::Value>(subject, &request).await.ok()
    });
    None
}

#[test]
fn another_server_takes_over_when_the_leader_is_killed() {
    let Some(mut servers) = three_servers() else { return };
    let urls: Vec<_> = servers.iter().map(Server::url).collect();
    let all = urls.join(",");
    let proxies: Vec<_> =
        servers.iter().map(|server| Proxy::new(server.host(), server.port())).collect();
    let by_proxy = proxies.iter().map(Proxy::url).collect::<Vec<_>>().join(",");
    let settings = |url: &str| cluster(url).replicas(3).storage(Storage::File);
    // The servers must have found each other. Before that, they do not answer.
    let first = settings(&all).start_within(Duration::from_secs(10)).build().expect("settings");
    until("a leader of the servers", || {
        empty_run(&first).inspect_err(|error| println!("{error}")).ok()
    });
    // The notes of the batches are in the folder of the first server.
    let _worker = servers[0].worker_at(&all, "a", &[]);
    let report = run_with(settings(&by_proxy), || {
        servers[0].wait_for_start("a", Some(GATE));
        assert_outstanding(&mut observer(&servers[0]), IN_FLIGHT - 1);
        // The leader is the server to which the coordinator is connected.
        let number = until("the leader", || {
            let number = proxies.iter().position(Proxy::is_used)?;
            elect(&all, &format!("s{number}")).map(|()| number)
        });
        servers[number].kill();
        let mut rest = urls.clone();
        rest.remove(number);
        let killed = format!("s{number}");
        until("another leader", || leader(&rest.join(",")).filter(|name| *name != killed));
        servers[0].open_gate();
    });
    assert!(report.reconnects > 0);
    assert_eq!(report.nodes.keys().collect::<Vec<_>>(), ["a"]);
}
