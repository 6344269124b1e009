//! A real server in a temporary folder, and worker processes. All of them end with the test, even if it panics or is killed.
//!
//! The batches from [`GATE`] on wait in the stages until the test opens the gate. So what happens while it is closed happens while
//! these batches are outstanding, whatever the schedule.

#![allow(dead_code, reason = "each test binary uses its own part of this module")]

pub(crate) mod proxy;
pub(crate) mod roles;

use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use heist_cluster::{LeavingWorker, Observer};

/// Something is wrong if a step takes this long. Nothing else depends on it.
const HANG: Duration = Duration::from_secs(120);
/// The number of batches of a run.
pub(crate) const BATCHES: u64 = 60;
/// The first batch that waits for the gate.
pub(crate) const GATE: u64 = 20;
/// The options of a server with JetStream.
pub(crate) const JETSTREAM: &[&str] = &["-js"];
/// The bound of what is in flight.
pub(crate) const IN_FLIGHT: usize = 16;

/// A process that ends with its guard.
pub(crate) struct Guard(pub(crate) Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guard {
    /// Starts a process, which the system ends with the thread that has started it.
    fn spawn(command: &mut Command) -> Self {
        Self::spawn_piped(command.stdout(Stdio::null()))
    }

    /// The same, with an output that the test can read.
    pub(crate) fn spawn_piped(command: &mut Command) -> Self {
        let with_thread = || {
            // SAFETY: this option takes a signal, and no memory is read or written.
            match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        command.stderr(Stdio::null());
        // SAFETY: the closure makes a system call, and does nothing else.
        unsafe { command.pre_exec(with_thread) };
        Self(command.spawn().expect("a process"))
    }

    fn id(&self) -> i32 {
        i32::try_from(self.0.id()).expect("the number of a process")
    }

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so the number is its own.
        assert_eq!(unsafe { libc::kill(self.id(), signal) }, 0);
    }

    /// Stops the process, and waits until all of its threads have stopped.
    pub(crate) fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let mut status = 0;
        // SAFETY: the status is written to a variable of this function.
        let stopped = unsafe { libc::waitpid(self.id(), &raw mut status, libc::WUNTRACED) };
        assert_eq!(stopped, self.id());
        assert!(libc::WIFSTOPPED(status));
    }

    /// Waits until the process has ended, and returns whether it was successful.
    pub(crate) fn ends_well(&mut self) -> bool {
        until("the end of a process", || self.0.try_wait().expect("a child")).success()
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
        thread::sleep(Duration::from_millis(5));
    }
}

/// Asks a worker to leave that cannot leave at once, until it has answered in time.
pub(crate) fn drain(observer: &mut Observer, node: &str) -> LeavingWorker {
    until("an answer of a worker", || observer.drain(Some(node)).ok()?.pop())
}

/// Asks all workers to leave, until one of them has left. It may do so before its answer is heard.
pub(crate) fn drain_all(observer: &mut Observer, mut left: impl FnMut() -> bool) {
    until("the end of a worker", || {
        let _ = observer.drain(None);
        left().then_some(())
    });
}

/// Returns the program, or `None` if the tests are to be skipped.
pub(crate) fn program() -> Option<PathBuf> {
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
        skipped("there is no nats-server; ci/cluster.sh installs one");
    }
    found
}

/// Says once why tests of this program are skipped. What a test prints is shown only if it fails, so this goes around that.
pub(crate) fn skipped(why: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let _ = writeln!(std::io::stderr(), "skipped: {why}");
    });
}

/// Returns the port of the first address in a file of ports, if it is written completely.
fn port_in(text: &str) -> Option<u16> {
    // With TLS, the address begins otherwise.
    let (address, _) = text.split_once("://")?.1.split_once('"')?;
    address.rsplit_once(':')?.1.parse().ok()
}

/// Returns an address of the loopback interface that no other test has: nobody takes a port while a server is restarted.
pub(crate) fn host() -> Ipv4Addr {
    static HOSTS: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high, low, HOSTS.fetch_add(1, Ordering::Relaxed))
}

/// A server.
pub(crate) struct Server {
    program: PathBuf,
    folder: tempfile::TempDir,
    child: Option<Guard>,
    host: Ipv4Addr,
    /// 0 before the first start, which chooses a free one. A restart keeps it.
    port: u16,
    extra: Vec<String>,
}

impl Server {
    /// Starts a server on the loopback interface. Returns `None` if the tests are to be skipped.
    pub(crate) fn start(arguments: &[&str], config: &str) -> Option<Self> {
        Self::start_with(arguments, |_, _| config.to_owned())
    }

    /// The same, with a configuration for the folder and the address of the server.
    pub(crate) fn start_with(
        arguments: &[&str],
        config: impl FnOnce(&Path, Ipv4Addr) -> String,
    ) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("server.conf");
        let mut extra: Vec<String> =
            arguments.iter().map(|argument| (*argument).to_owned()).collect();
        extra.extend(["-c".to_owned(), file.display().to_string()]);
        let host = host();
        fs::write(&file, config(folder.path(), host)).expect("a file");
        let mut server = Self { program, folder, child: None, host, port: 0, extra };
        server.run();
        Some(server)
    }

    /// Starts the process, with the files that it had before if there are any.
    pub(crate) fn run(&mut self) {
        let folder = self.folder.path();
        let output = folder.join("server.log");
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let mut command = Command::new(&self.program);
        command.args(["-a", &self.host.to_string(), "-p", &port, "-sd"]).arg(folder.join("data"));
        command.arg("-l").arg(&output).arg("--ports_file_dir").arg(folder).args(&self.extra);
        let mut child = Guard::spawn(&mut command);
        // The name of the file begins with that of the program.
        let end = format!("_{}.ports", child.0.id());
        self.port = until("the start of the server", || {
            let mut files = fs::read_dir(folder).expect("a folder").flatten();
            let file = files.find(|file| file.file_name().to_string_lossy().ends_with(&end));
            let text = file.and_then(|file| fs::read_to_string(file.path()).ok());
            if let Some(port) = text.as_deref().and_then(port_in) {
                return Some(port);
            }
            if let Some(status) = child.0.try_wait().expect("a child") {
                let output = fs::read_to_string(&output).unwrap_or_default();
                panic!("the server has ended ({status}):\n{output}");
            }
            None
        });
        self.child = Some(child);
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        self.child = None;
    }

    pub(crate) fn host(&self) -> Ipv4Addr {
        self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}:{}", self.host, self.port)
    }

    /// The address with a user and a password, or with a token.
    pub(crate) fn url_of(&self, user: &str) -> String {
        format!("nats://{user}@{}:{}", self.host, self.port)
    }

    /// Where the processes of a test leave notes for each other.
    pub(crate) fn note(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Lets the batches that wait for the gate go on.
    pub(crate) fn open_gate(&self) {
        fs::write(self.note("open"), "").expect("a file");
    }

    /// Lets the batches that wait for one of several gates go on.
    pub(crate) fn open_gate_number(&self, gate: u64) {
        fs::write(self.note(&format!("open-{gate}")), "").expect("a file");
    }

    /// Waits until a node has started this batch, or any batch behind the gate.
    pub(crate) fn wait_for_start(&self, node: &str, batch: Option<u64>) {
        let numbers = batch.map_or(GATE..BATCHES, |batch| batch..batch + 1);
        until("the start of a batch", || {
            let mut notes =
                numbers.clone().map(|number| self.note(&format!("started-{node}-{number}")));
            notes.any(|note| note.exists()).then_some(())
        });
    }

    /// Returns the command that starts this test program for one of its helpers.
    fn helper(&self, name: &str, node: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", name, "--nocapture"]);
        command.env("HEIST_CLUSTER_URL", self.url()).env("HEIST_CLUSTER_NODE", node);
        command.env("HEIST_TEST_FOLDER", self.folder.path());
        command
    }

    /// Starts this test program as a worker.
    pub(crate) fn worker(&self, node: &str, trouble: &str) -> Guard {
        self.worker_at(&self.url(), node, &[("HEIST_TEST_TROUBLE", trouble)])
    }

    /// The same, with a thread for each batch in flight and some copies. Of several workers with one thread, each could wait at the
    /// gate with a batch that comes before it in its queue.
    pub(crate) fn wide_worker(&self, node: &str) -> Guard {
        self.worker_at(&self.url(), node, &[("HEIST_CLUSTER_THREADS", "24")])
    }

    /// The same, with an address that contains the user, and with more variables.
    pub(crate) fn worker_at(&self, url: &str, node: &str, variables: &[(&str, &str)]) -> Guard {
        let mut command = self.helper("common::roles::serve_as_worker", node);
        command.env("HEIST_CLUSTER_ROLE", "worker").env("HEIST_CLUSTER_THREADS", "1");
        command.env("HEIST_CLUSTER_URL", url).envs(variables.iter().copied());
        Guard::spawn(&mut command)
    }

    /// Starts this test program as a coordinator, which writes the number of results to a note, and then how the run has ended.
    pub(crate) fn coordinator(&self) -> Guard {
        self.coordinator_with("resume")
    }

    /// The same, with `resume` or without.
    pub(crate) fn coordinator_with(&self, mode: &str) -> Guard {
        Guard::spawn(
            self.helper("common::roles::serve_as_coordinator", "c")
                .env("HEIST_TEST_COORDINATOR", mode),
        )
    }

    /// Returns the content of a note, if it is there.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.note(name)).ok()
    }

    /// Keeps a worker running for each of the nodes, until the function returns.
    pub(crate) fn with_workers<R>(
        &self,
        nodes: &[&str],
        trouble: &str,
        run: impl FnOnce() -> R,
    ) -> R {
        struct Over<'o>(&'o AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _over = Over(&over);
            scope.spawn(|| {
                let start = |node: &&str| self.worker(node, trouble);
                let mut workers: Vec<_> = nodes.iter().map(start).collect();
                while !over.load(Ordering::SeqCst) {
                    for (worker, node) in workers.iter_mut().zip(nodes) {
                        if worker.0.try_wait().expect("a child").is_some() {
                            *worker = start(node);
                        }
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            });
            run()
        })
    }
}
