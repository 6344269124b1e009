//! Where the numbers come from: without that they mean nothing to anyone else.

use std::path::Path;

use crate::record::{Machine, Record, VERSION};

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
    &["rayon"]
};

/// A record of nothing, with everything that does not come from a measurement.
pub(crate) fn look() -> Record {
    let peer = |name| (name, locked_version(LOCK, name).unwrap_or_default());
    let peers = PEERS.iter().copied().map(peer).chain(tbb());
    Record {
        version: Some(VERSION),
        arguments: std::env::args_os().skip(1).map(|word| typed(&word.to_string_lossy())).collect(),
        by_cargo: std::env::var_os("CARGO_MANIFEST_DIR").is_some(),
        machine: Machine {
            cpu: cpu_model(&read("/proc/cpuinfo")).into(),
            cores: std::thread::available_parallelism().map_or(0, Into::into),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            // The build script has asked: by now there may be another compiler, and another commit.
            rustc: env!("HEIST_BENCH_RUSTC").into(),
        },
        commit: env!("HEIST_BENCH_COMMIT").into(),
        optimized: Some(!cfg!(debug_assertions)),
        peers: peers.map(|(name, version)| (name.into(), version)).collect(),
        ..Record::default()
    }
}

/// A word of the command, without the folders of this machine: they are nobody else's business.
fn typed(word: &str) -> String {
    let (option, value) = match word.split_once('=') {
        Some((option, value)) if option.starts_with('-') => (&word[..=option.len()], value),
        _ => ("", word),
    };
    let path = Path::new(value);
    match path.file_name() {
        Some(name) if path.is_absolute() && !path.starts_with("/dev") => {
            format!("{option}{}", name.to_string_lossy())
        }
        _ => word.into(),
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
    fn folders_are_not_recorded() {
        for (word, expected) in [
            ("/a/b/c.json", "c.json"),
            ("--json=/a/b/c.json", "--json=c.json"),
            ("b/c.json", "b/c.json"),
            ("--json=c.json", "--json=c.json"),
            ("/dev/stdout", "/dev/stdout"),
            ("duel/skewed", "duel/skewed"),
            ("--rounds", "--rounds"),
        ] {
            assert_eq!(typed(word), expected);
        }
    }

    #[test]
    fn the_compiler_is_known() {
        assert!(look().machine.rustc.starts_with("rustc "));
    }

    #[test]
    fn the_lock_file_names_the_peers() {
        for name in PEERS {
            assert!(locked_version(LOCK, name).is_some(), "{name}");
        }
        assert_eq!(locked_version(LOCK, "no-such-crate"), None);
    }
}
