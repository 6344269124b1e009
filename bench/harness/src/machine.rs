//! Describes the machine, the build and the command, without which numbers mean nothing to other readers.

use std::collections::BTreeMap;
use std::path::Path;

use crate::record::{Machine, Record, VERSION};

/// What a program was built from.
#[derive(Debug, Default)]
pub struct Build {
    /// The version of the compiler.
    pub rustc: String,
    /// The commit of the sources, with `-dirty` if they had changes.
    pub commit: String,
    /// The names and versions of the peers that can take part.
    pub peers: BTreeMap<String, String>,
}

/// Returns a record without measurements: this machine, this build and this command.
pub fn look(build: Build) -> Record {
    let Build { rustc, commit, peers } = build;
    Record {
        version: Some(VERSION),
        arguments: std::env::args_os().skip(1).map(|word| typed(&word.to_string_lossy())).collect(),
        by_cargo: std::env::var_os("CARGO_MANIFEST_DIR").is_some(),
        machine: Machine {
            cpu: cpu_model(&read("/proc/cpuinfo")).into(),
            cores: std::thread::available_parallelism().map_or(0, Into::into),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            rustc,
        },
        commit,
        optimized: Some(!cfg!(debug_assertions)),
        peers,
        ..Record::default()
    }
}

/// Returns a word of the command without directories of this machine, which do not concern other readers.
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

/// Returns the version of a package in the text of a lock file.
pub fn locked_version(lock: &str, name: &str) -> Option<String> {
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
    fn the_first_processor_names_the_model() {
        let text = "processor\t: 0\nmodel name\t: Fast CPU\nprocessor\t: 1\nmodel name\t: Other\n";
        assert_eq!(cpu_model(text), "Fast CPU");
        assert_eq!(cpu_model(""), "");
    }

    #[test]
    fn directories_are_not_recorded() {
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
    fn a_version_is_that_of_the_whole_name() {
        let lock = "[[package]]\nname = \"st3-more\"\nversion = \"9\"\n\n[[package]]\nname = \"st3\"\nversion = \"0.4.1\"\n";
        assert_eq!(locked_version(lock, "st3").as_deref(), Some("0.4.1"));
        assert_eq!(locked_version(lock, "none"), None);
    }
}
