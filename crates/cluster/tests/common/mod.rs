//! A real server in a temporary folder, and worker processes. All of them end with the test, even if it panics.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use heist::pipeline::Pipeline;
use heist_cluster::{Cluster, ClusterBuilder, ClusterError, ClusterReport, RunOn};

/// Something is wrong if a step takes this long. Nothing else depends on it.
const HANG: Duration = Duration::from_secs(120);

/// A process that ends with its guard.
pub(crate) struct Guard(pub(crate) Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guard {
    pub(crate) fn signal(&self, signal: i32) {
        let id = i32::try_from(self.0.id()).expect("the number of a process");
        // SAFETY: the child has not been waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }
}

/// Waits until the condition yields something.
pub(crate) fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(began.elapsed() < HANG, "{what}: nothing for {HANG:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the program, or `None` if the tests are to be skipped.
fn program() -> Option<PathBuf> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nats-server/bin/nats-server");
    let named = std::env::var_os("HEIST_NATS_SERVER").map(PathBuf::from);
    let found = named.into_iter().chain([root, PathBuf::from("nats-server")]).find(|program| {
        let mut version = Command::new(program);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    });
    let required = std::env::var("HEIST_CLUSTER_TESTS").is_ok_and(|value| value == "required");
    assert!(found.is_some() || !required, "there is no nats-server: ci/cluster.sh installs one");
    if found.is_none() {
        println!("skipped: there is no nats-server; ci/cluster.sh installs one");
    }
    found
}

/// A server.
pub(crate) struct Server {
    program: PathBuf,
    folder: tempfile::TempDir,
    child: Option<Guard>,
    pub(crate) port: u16,
    extra: Vec<String>,
}

impl Server {
    /// Starts a server on a free port of the loopback interface. Returns `None` if the tests are to be skipped.
    pub(crate) fn start(arguments: &[&str], config: &str) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("server.conf");
        std::fs::write(&file, config).expect("a file");
        let mut extra: Vec<String> =
            arguments.iter().map(|argument| (*argument).to_owned()).collect();
        extra.extend(["-c".to_owned(), file.display().to_string()]);
        let mut server = Self { program, folder, child: None, port: 0, extra };
        server.run();
        Some(server)
    }

    /// Starts the process, on the port that it had before if there was one.
    pub(crate) fn run(&mut self) {
        let folder = self.folder.path();
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let mut command = Command::new(&self.program);
        command.args(["-a", "127.0.0.1", "-p", &port, "-sd"]).arg(folder.join("data"));
        command.arg("--ports_file_dir").arg(folder).args(&self.extra);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = Guard(command.spawn().expect("a server"));
        let file = folder.join(format!("nats-server_{}.ports", child.0.id()));
        let found = until("the port of the server", || {
            let text = std::fs::read_to_string(&file).ok()?;
            let ports: serde_json::Value = serde_json::from_str(&text).ok()?;
            let address = ports["nats"][0].as_str()?.to_owned();
            address.rsplit(':').next()?.parse().ok()
        });
        self.port = found;
        self.child = Some(child);
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        self.child = None;
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

/// Returns the settings that all tests share.
pub(crate) fn cluster(url: &str) -> ClusterBuilder {
    Cluster::builder().url(url).lease(Duration::from_secs(1)).attempts(2)
}

/// Runs the job that the workers know: squares, at most so many batches of one item.
pub(crate) fn squares(
    cluster: &Cluster,
    batches: u64,
    mut sink: impl FnMut(u64, u64),
) -> Result<ClusterReport, ClusterError> {
    let mut next = 0;
    let pipeline = Pipeline::new(0..batches).batch(1).in_flight(16).map(work).ordered();
    pipeline.run_on(cluster, "squares", |square| {
        sink(next, square);
        next += 1;
    })
}

/// What a worker does with a number. `HEIST_TEST_TROUBLE` names a number and what happens to it.
fn work(number: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(5));
    let trouble = std::env::var("HEIST_TEST_TROUBLE").unwrap_or_default();
    if let Some((what, at)) = trouble.split_once('=')
        && at.parse() == Ok(number)
    {
        match what {
            "abort" => {
                std::thread::sleep(Duration::from_millis(100));
                std::process::abort()
            }
            _ => panic!("no such number"),
        }
    }
    number * number
}

/// Starts this test program as a worker.
pub(crate) fn worker(server: &Server, node: &str, trouble: &str) -> Guard {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "serve_as_worker", "--nocapture"]);
    command.env("HEIST_CLUSTER_URL", server.url()).env("HEIST_CLUSTER_ROLE", "worker");
    command.env("HEIST_CLUSTER_NODE", node).env("HEIST_CLUSTER_THREADS", "1");
    command.env("HEIST_TEST_TROUBLE", trouble).stdout(Stdio::null()).stderr(Stdio::null());
    Guard(command.spawn().expect("a worker"))
}
