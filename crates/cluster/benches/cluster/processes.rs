//! The server and the worker processes, and the processor time that they have used.

use std::error::Error;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::Sample;
use crate::runs::{FACTOR, Work};

/// Has the system end a process with the thread that starts it, however that ends: workers serve for ever.
fn ends_with_this_thread(command: &mut Command) -> &mut Command {
    let with_thread = || {
        // SAFETY: this option takes a signal, and no memory is read or written.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes a system call, and does nothing else.
    unsafe { command.pre_exec(with_thread) }
}

/// The server, and all workers that were started with it.
pub(crate) struct Server {
    child: Child,
    _folder: tempfile::TempDir,
    url: String,
    workers: Mutex<Vec<u32>>,
}

impl Server {
    /// Starts a server on a free port. Returns `None` if there is no program.
    pub(crate) fn start() -> Result<Option<Self>, Box<dyn Error>> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nats-server/bin/nats-server");
        let named = std::env::var_os("HEIST_NATS_SERVER").map(PathBuf::from);
        let folder = tempfile::tempdir()?;
        for program in named.into_iter().chain([root, PathBuf::from("nats-server")]) {
            let mut command = Command::new(program);
            command.args(["-a", "127.0.0.1", "-p", "-1", "-js", "-sd"]).arg(folder.path());
            command.arg("--ports_file_dir").arg(folder.path());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let Ok(child) = ends_with_this_thread(&mut command).spawn() else { continue };
            let mut server =
                Self { child, _folder: folder, url: String::new(), workers: Mutex::default() };
            server.url = server.wait_for_url()?;
            return Ok(Some(server));
        }
        Ok(None)
    }

    fn wait_for_url(&self) -> Result<String, Box<dyn Error>> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            let files = fs::read_dir(self._folder.path())?.flatten().map(|file| file.path());
            let texts = files.filter_map(|file| fs::read_to_string(file).ok());
            let address = |text: String| {
                Some(format!("nats://{}", text.split_once("\"nats://")?.1.split_once('"')?.0))
            };
            if let Some(url) = texts.filter_map(address).next() {
                return Ok(url);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err("the server does not start".into())
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Measures a function.
    pub(crate) fn sample(
        &self,
        work: impl FnOnce() -> Result<(), Box<dyn Error>>,
    ) -> Result<Sample, Box<dyn Error>> {
        let (processor, began) = (self.processor(), Instant::now());
        work()?;
        let wall = began.elapsed();
        // What a run has begun in other processes belongs to it.
        thread::sleep(Duration::from_millis(20));
        Ok(Sample { wall, processor: self.processor() - processor })
    }

    /// Returns the processor time of all processes so far.
    fn processor(&self) -> Duration {
        let workers = self.workers.lock().expect("no panic");
        let all = workers.iter().copied().chain([self.child.id(), std::process::id()]);
        all.map(processor_of).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the processor time of a process, in steps of 10 ms.
fn processor_of(process: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name of the program may contain anything.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks =
        fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// A worker process.
pub(crate) struct Worker<'s> {
    child: Child,
    server: &'s Server,
}

impl<'s> Worker<'s> {
    /// Starts this program as a worker with one thread.
    pub(crate) fn start(server: &'s Server, work: Work, node: &str, factor: u32) -> Self {
        let (variable, value) = work.variable();
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.env(variable, value).env(FACTOR, factor.to_string());
        command.env("HEIST_CLUSTER_URL", server.url()).env("HEIST_CLUSTER_ROLE", "worker");
        command.env("HEIST_CLUSTER_STAY", "1").env("HEIST_CLUSTER_THREADS", "1");
        command.env("HEIST_CLUSTER_NODE", node);
        let child = ends_with_this_thread(&mut command).spawn().expect("a process");
        server.workers.lock().expect("no panic").push(child.id());
        Self { child, server }
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let id = self.child.id();
        self.server.workers.lock().expect("no panic").retain(|worker| *worker != id);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
