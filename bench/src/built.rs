//! What this program was built from: the compiler, the commit and the versions of the peers.

use harness::machine::{self, Build, locked_version};
use harness::record::Record;

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

const LOCK: &str = include_str!("../../Cargo.lock");

/// Returns a record without measurements: this machine, this build and this command.
pub(crate) fn about() -> Record {
    let peer = |name| (name, locked_version(LOCK, name).unwrap_or_default());
    let peers = PEERS.iter().copied().map(peer).chain(tbb());
    // The build script asked: by now there may be another compiler, and another commit.
    machine::look(Build {
        rustc: env!("HEIST_BENCH_RUSTC").into(),
        commit: env!("HEIST_BENCH_COMMIT").into(),
        peers: peers.map(|(name, version)| (name.into(), version)).collect(),
    })
}

/// Returns the version of oneTBB, which is not in the lock file.
fn tbb() -> Option<(&'static str, String)> {
    #[cfg(feature = "tbb")]
    return Some(("oneTBB", crate::workloads::fork::tbb::version()));
    #[cfg(not(feature = "tbb"))]
    None
}

/// The feature that a build needs for this peer to take part, if this build lacks it.
pub fn missing_feature(peer: &str) -> Option<&'static str> {
    let others =
        ["channel", "channel-64", "chili", "crossbeam", "pariter", "st3", "threadpool", "tokio"];
    match peer {
        "tbb" if cfg!(not(feature = "tbb")) => Some("tbb"),
        other if cfg!(not(feature = "peers")) && others.contains(&other) => Some("peers"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_known() {
        assert!(about().machine.rustc.starts_with("rustc "));
    }

    #[test]
    fn the_lock_file_names_the_peers() {
        for name in PEERS {
            assert!(locked_version(LOCK, name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_peer_takes_part_or_its_feature_is_missing() {
        let mut names: Vec<_> =
            ["crossbeam", "st3", "chili", "tokio", "threadpool", "channel"].into();
        names.extend(["channel-64", "pariter", "tbb", "rayon"]);
        let rows = crate::workloads::rows();
        for name in names {
            let takes_part = rows.iter().any(|row| row.entry(name).is_some());
            assert_eq!(takes_part, missing_feature(name).is_none(), "{name}");
        }
        assert_eq!(missing_feature("nobody"), None);
    }
}
