//! What the processes of a test run, and the run that tests disturb.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use heist::pipeline::{Pipeline, Retry, Skip, Source, Steps};
use heist_cluster::{Cluster, ClusterBuilder, ClusterError, ClusterReport, Role, RunOn};

use super::{BATCHES, GATE, HANG, IN_FLIGHT, until};

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
            fs::write(PathBuf::from(folder).join("served"), "").expect("a file");
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
    let folder = PathBuf::from(std::env::var_os("HEIST_TEST_FOLDER").expect("a folder"));
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

/// Returns the settings that all tests share. A machine that is busy for longer than the lease has batches started often, and that
/// is no failure.
pub(crate) fn cluster(url: &str) -> ClusterBuilder {
    Cluster::builder().url(url).lease(Duration::from_secs(1)).attempts(1_000).start_within(HANG)
}

/// Runs the job that the workers know: squares, in batches of one item. The sink gets each number and its square.
pub(crate) fn squares(
    cluster: &Cluster,
    batches: u64,
    mut sink: impl FnMut(u64, u64),
) -> Result<ClusterReport, ClusterError> {
    let mut next = 0;
    squares_into(cluster, batches, |square| {
        sink(next, square);
        next += 1;
        Ok(())
    })
}

/// The same, with a sink that may fail.
pub(crate) fn squares_into(
    cluster: &Cluster,
    batches: u64,
    sink: impl FnMut(u64) -> Result<(), String>,
) -> Result<ClusterReport, ClusterError> {
    pipeline(batches).ordered().try_run_on(cluster, "squares", sink)
}

/// The same, in any order.
pub(crate) fn squares_in_any_order(
    cluster: &Cluster,
    batches: u64,
    sink: impl FnMut(u64),
) -> Result<ClusterReport, ClusterError> {
    pipeline(batches).run_on(cluster, "squares", sink)
}

fn pipeline(batches: u64) -> Pipeline<impl Source<Item = u64> + Send, impl Steps<u64, Out = u64>> {
    Pipeline::new(0..batches).batch(1).in_flight(IN_FLIGHT).map(work)
}

/// What a worker does with a number. `HEIST_TEST_TROUBLE` names a number and what happens to it.
fn work(number: u64) -> u64 {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let folder = PathBuf::from(variable("HEIST_TEST_FOLDER"));
    let started = format!("started-{}-{number}", variable("HEIST_CLUSTER_NODE"));
    fs::write(folder.join(started), "").expect("a file");
    if let Ok(step) = variable("HEIST_TEST_STEP").parse::<u64>() {
        let open = folder.join(format!("open-{}", number / step));
        until("one of the gates", || (number < step || open.exists()).then_some(()));
    } else if number >= GATE {
        until("the gate", || folder.join("open").exists().then_some(()));
    }
    thread::sleep(Duration::from_millis(variable("HEIST_TEST_MILLIS").parse().unwrap_or(2)));
    let trouble = variable("HEIST_TEST_TROUBLE");
    if let Some((what, at)) = trouble.split_once('=')
        && at.parse() == Ok(number)
    {
        match what {
            "abort" => std::process::abort(),
            _ => panic!("no such number"),
        }
    }
    number * number
}

/// Runs the job, and checks that every result comes once and in order.
///
/// `fault` is called with the result before the gate. Then as many batches are outstanding as may be in flight beside that one.
pub(crate) fn run_with(settings: ClusterBuilder, fault: impl FnMut()) -> ClusterReport {
    run_batches(settings, BATCHES, fault)
}

pub(crate) fn run_batches(
    settings: ClusterBuilder,
    batches: u64,
    mut fault: impl FnMut(),
) -> ClusterReport {
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

/// Runs a job whose stages filter, expand, have state and fail. Returns its results, too.
pub(crate) fn many_stages(
    cluster: &Cluster,
) -> Result<(Vec<(u64, bool)>, ClusterReport), ClusterError> {
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

/// Runs a job that has no batches.
pub(crate) fn empty_run(cluster: &Cluster) -> Result<ClusterReport, ClusterError> {
    Pipeline::new(0..0_u64).run_on(cluster, "nothing", |_| ())
}
