//! Where the numbers come from: without that they mean nothing to anyone else.

use std::process::Command;

/// What the machine says of itself. Unknown is empty.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// Of the compiler that is found now. Run through `cargo run`, it is the one that built this.
    pub(crate) rustc: String,
    /// With `-dirty` if the checkout had changes.
    pub(crate) commit: String,
    /// The names and versions of the peers that are measured.
    pub(crate) peers: Vec<(&'static str, String)>,
    /// What was typed after the program's name.
    pub(crate) arguments: Vec<String>,
}

/// The peers that this program was built with.
const PEERS: &[&str] = if cfg!(feature = "peers") {
    &[
        "crossbeam-deque",
        "st3",
        "rayon",
        "chili",
        "tokio",
        "threadpool",
        "crossbeam-channel",
        "pariter",
    ]
} else {
    &[]
};

impl Machine {
    pub(crate) fn look() -> Self {
        let peer = |name| (name, locked_version(LOCK, name).unwrap_or_default());
        Self {
            cpu: cpu_model(&read("/proc/cpuinfo")).into(),
            cores: std::thread::available_parallelism().map_or(0, Into::into),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            rustc: output("rustc", &["-V"]),
            commit: output("git", &["describe", "--always", "--dirty", "--abbrev=12"]),
            peers: PEERS.iter().copied().map(peer).chain(tbb()).collect(),
            arguments: std::env::args().skip(1).collect(),
        }
    }
}

/// It is not in the lock file.
fn tbb() -> Option<(&'static str, String)> {
    #[cfg(feature = "tbb")]
    return Some(("oneTBB", crate::fork::tbb::version()));
    #[cfg(not(feature = "tbb"))]
    None
}

const LOCK: &str = include_str!("../../Cargo.lock");

fn locked_version(lock: &str, name: &str) -> Option<String> {
    let line = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|&found| found != line);
    let version = lines.nth(1)?.strip_prefix("version = ")?;
    Some(version.trim_matches('"').into())
}

fn cpu_model(cpuinfo: &str) -> &str {
    let model = |line: &'_ str| line.starts_with("model name");
    let line = cpuinfo.lines().find(|line| model(line)).unwrap_or_default();
    line.split_once(':').map_or("", |(_, name)| name.trim())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().into()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_core_names_the_model() {
        let text = "processor\t: 0\nmodel name\t: Fast CPU\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(cpu_model(text), "Fast CPU");
        assert_eq!(cpu_model(""), "");
    }

    #[test]
    fn the_lock_file_names_the_peers() {
        for name in PEERS {
            assert!(locked_version(LOCK, name).is_some(), "{name}");
        }
        assert_eq!(locked_version(LOCK, "no-such-crate"), None);
    }
}
