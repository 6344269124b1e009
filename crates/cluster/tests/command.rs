//! The program `heist-cluster`, as its user sees it.

// Addresses of the loopback interface and processes that end with their parent are as Linux has them.
#![cfg(all(target_os = "linux", feature = "command"))]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::fd::FromRawFd;
use std::process::{Command, Stdio};

use common::roles::{cluster, run_with};
use common::{BATCHES, GATE, Guard, IN_FLIGHT, JETSTREAM, Server, program, until};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heist-cluster"));
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HEIST_") {
            command.env_remove(name);
        }
    }
    // However busy the machine is.
    command.env("HEIST_CLUSTER_START_MS", "120000");
    command
}

/// The same, again and again until it says what it should: nodes and servers that are busy answer too late.
fn output_with(url: &str, arguments: &[&str], what: &str) -> (String, String, Option<i32>) {
    until(what, || {
        let (said, failure, code) = output(url, arguments);
        (said.contains(what) || failure.contains(what)).then_some((said, failure, code))
    })
}

/// Runs the command with a server, and returns its output, its messages and its exit code.
fn output(url: &str, arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = command(arguments).env("HEIST_CLUSTER_URL", url).output().expect("the program");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn a_run_is_shown_and_a_worker_is_drained() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let url = server.url();
    let mut leaving = server.wide_worker("a");
    let mut workers = vec![server.wide_worker("b")];
    let report = run_with(cluster(&url).node("c"), || {
        server.wait_for_start("a", None);
        server.wait_for_start("b", None);
        let (shown, ..) = until("two workers", || {
            let shown = output(&url, &["status"]);
            let outstanding = format!("{} outstanding", IN_FLIGHT - 1);
            let whole = shown.0.matches(" ago").count() == 2 && shown.0.contains(&outstanding);
            whole.then_some(shown)
        });
        assert!(shown.starts_with("squares, for "), "{shown}");
        assert!(shown.contains("coordinator c"), "{shown}");
        assert!(shown.contains(&format!("  {GATE} batches, ")), "{shown}");
        assert!(!shown.contains('\x1b'), "{shown}");
        let (json, _, code) = output_with(&url, &["status", "--json"], "\"job\": \"squares\"");
        assert_eq!(code, Some(0));
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["jobs"][0]["job"], "squares");
        assert_eq!(json["jobs"][0]["report"]["batches"], GATE);
        assert!(json["jobs"][0]["report"]["elapsed"].as_f64().expect("seconds") > 0.0);

        let nobody = "no worker with the name \"nobody\"";
        let (_, _, code) = output_with(&url, &["drain", "nobody"], nobody);
        assert_eq!(code, Some(1));
        let (said, _, code) = output_with(&url, &["drain", "a"], "leaves");
        assert_eq!(code, Some(0));
        assert!(said.starts_with("a leaves the job squares; it had "), "{said}");
        server.open_gate();
        assert!(leaving.ends_well());
    });
    assert_eq!(report.nodes.values().map(|node| node.batches).sum::<u64>(), BATCHES);
    workers.clear();
    let (shown, _, code) = until("the end of the worker", || {
        let shown = output(&url, &["status", "--once"]);
        shown.0.starts_with("no run").then_some(shown)
    });
    assert_eq!(code, Some(0), "{shown}");
    let (_, _, code) = output_with(&url, &["drain", "--all"], "no worker answers");
    assert_eq!(code, Some(1));
}

/// Returns the two ends of a terminal: that of its user, and that of a program.
fn terminal() -> (std::fs::File, std::fs::File) {
    let (mut user, mut program) = (0, 0);
    let (none, size) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the numbers of two files are written to variables of this function. The other pointers may be null.
    let opened = unsafe { libc::openpty(&raw mut user, &raw mut program, none, none.cast(), size) };
    assert_eq!(opened, 0);
    // SAFETY: the call has opened both files, and nobody else has them.
    let file = |number| unsafe { std::fs::File::from_raw_fd(number) };
    (file(user), file(program))
}

#[test]
fn a_terminal_is_refreshed_and_shows_stragglers_and_what_was_redelivered() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut workers = vec![server.worker("a", "")];
    let (mut user, program) = terminal();
    run_with(cluster(&server.url()), || {
        server.wait_for_start("a", Some(GATE));
        workers.clear();
        workers.push(server.wide_worker("b"));
        server.wait_for_start("b", Some(GATE));
        let mut status = command(&["status"]);
        status.env("HEIST_CLUSTER_URL", server.url()).env("TERM", "xterm");
        let status = status.stdout(program.try_clone().expect("a copy"));
        let _status = Guard::spawn_piped(status);
        let mut shown = String::new();
        let mut buffer = [0; 4096];
        until("what is live", || {
            let count = user.read(&mut buffer).expect("output");
            shown += &String::from_utf8_lossy(&buffer[..count]);
            // From the start of the screen to its end.
            let screens: Vec<_> =
                shown.split("\x1b[H").filter(|text| text.ends_with("\x1b[J")).collect();
            let last = screens.last()?;
            let slow = format!("  slow: batch {GATE} for ");
            let has = |text: &str| last.contains(text);
            let live = screens.len() >= 3
                && has(&slow)
                && has("(a, b)")
                && has(" outstanding, the oldest for ");
            (live && !has(" 0 redelivered") && has("  b  ")).then_some(())
        });
        server.open_gate();
    });
}

#[test]
fn a_server_is_started_used_and_ended() {
    let Some(nats) = program() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("state").display().to_string();
    let mut up = command(&["up", "--port", "0", "--dir", &dir]);
    up.env("HEIST_NATS_SERVER", &nats);
    let mut up = Guard::spawn_piped(up.stdout(Stdio::piped()));
    let mut lines = BufReader::new(up.0.stdout.take().expect("a pipe")).lines();
    let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains("export"));
    let line = line.expect("an address");
    let (_, url) = line.split_once("HEIST_CLUSTER_URL=").expect("an address");
    assert!(url.starts_with("nats://127.0.0.1:"), "{url}");

    let mut second = command(&["up", "--port", "0", "--dir", &dir]);
    let second = second.env("HEIST_NATS_SERVER", &nats).output().expect("the program");
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("is running already"), "{said}");

    // Another folder, and a port that is in use.
    let port = url.rsplit_once(':').expect("a port").1;
    let other = folder.path().join("other").display().to_string();
    let mut third = command(&["up", "--port", port, "--dir", &other]);
    let third = third.env("HEIST_NATS_SERVER", &nats).output().expect("the program");
    assert_eq!(third.status.code(), Some(1));
    let said = String::from_utf8_lossy(&third.stderr);
    assert!(said.contains("--port"), "{said}");

    let settings = cluster(url).build().expect("settings");
    common::roles::empty_run(&settings).expect("a run");
    up.signal(libc::SIGTERM);
    let mut rest = String::new();
    lines.map_while(Result::ok).for_each(|line| rest += &line);
    assert!(up.ends_well(), "{rest}");
    assert!(TcpStream::connect(url.trim_start_matches("nats://")).is_err());
}

/// A server without its command could never be ended from a terminal.
#[test]
fn a_server_ends_with_its_command() {
    let Some(nats) = program() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut up = command(&["up", "--port", "0", "--dir", &folder.path().display().to_string()]);
    up.env("HEIST_NATS_SERVER", &nats);
    let mut up = Guard::spawn_piped(up.stdout(Stdio::piped()));
    let mut lines = BufReader::new(up.0.stdout.take().expect("a pipe")).lines();
    let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains("export"));
    let line = line.expect("an address");
    let (_, address) = line.split_once("nats://").expect("an address");
    TcpStream::connect(address).expect("a server");
    up.signal(libc::SIGKILL);
    until("the end of the server", || TcpStream::connect(address).err());
    // The folder is free again when it has ended.
    until("the lock of the folder", || {
        let lock = std::fs::File::open(folder.path().join("lock")).expect("a file");
        lock.try_lock().ok()
    });
}

#[test]
fn without_a_server_it_says_how_to_get_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().display().to_string();
    let mut up = command(&["up", "--dir", &dir]);
    let up = up.env("PATH", "/no/such/folder").output().expect("the program");
    let said = String::from_utf8_lossy(&up.stderr);
    assert_eq!(up.status.code(), Some(1), "{said}");
    assert!(said.contains("apt install nats-server"), "{said}");
    let (shown, said, code) = output("nats://127.0.0.1:1", &["status"]);
    assert_eq!((shown.as_str(), code), ("", Some(1)));
    assert!(said.contains("heist cluster up"), "{said}");
}

#[test]
fn a_worker_is_the_program_of_the_user_with_its_role() {
    let variables = r#"echo "$HEIST_CLUSTER_ROLE $HEIST_CLUSTER_NODE $HEIST_CLUSTER_THREADS $HEIST_CLUSTER_STAY $1"; exit 7"#;
    let arguments = [
        "worker",
        "--node",
        "n",
        "--threads",
        "3",
        "--stay",
        "--",
        "sh",
        "-c",
        variables,
        "sh",
        "--all",
    ];
    let (said, _, code) = output("nats://127.0.0.1:1", &arguments);
    assert_eq!((said.as_str(), code), ("worker n 3 1 --all\n", Some(7)));
    let (_, said, code) = output("nats://127.0.0.1:1", &["worker", "--", "/no/such/program"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot start /no/such/program"), "{said}");
    let (_, said, code) = output("bad url", &["worker", "--", "true"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("nats://host:port"), "{said}");
}

#[test]
fn help_has_examples_and_wrong_lines_are_usage_errors() {
    for name in ["up", "status", "worker", "drain"] {
        let (help, _, code) = output("", &[name, "--help"]);
        assert_eq!(code, Some(0));
        assert!(help.contains(&format!("Usage: heist cluster {name}")), "{help}");
        let examples = help.lines().filter(|line| line.starts_with("  heist cluster ")).count();
        assert!(examples >= 3, "{help}");
    }
    for wrong in [&["drain"][..], &["worker"], &["statis"], &[]] {
        let (_, said, code) = output("", wrong);
        assert_eq!(code, Some(2), "{said}");
    }
}

/// The reader closes the pipe at once, as `| head -0` does.
#[test]
fn a_closed_pipe_is_a_quiet_success() {
    let Some(server) = Server::start(JETSTREAM, "") else { return };
    let mut status = command(&["status"]);
    status.env("HEIST_CLUSTER_URL", server.url()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut status = status.spawn().expect("the program");
    drop(status.stdout.take());
    let mut said = String::new();
    status.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(status.wait().expect("an end").success() && said.is_empty(), "{said}");
}
