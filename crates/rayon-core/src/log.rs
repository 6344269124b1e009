//! Shows that it is this crate that runs: a line for each pool, in the file that `HEIST_RAYON_LOG` names.

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::process;

/// Where to, if the user wants to know.
pub(crate) fn path() -> Option<OsString> {
    env::var_os("HEIST_RAYON_LOG").filter(|path| !path.is_empty())
}

/// By the first thread of a pool. A line that cannot be written is not missed.
pub(crate) fn append(path: OsString, threads: usize) {
    let line = format!(
        "rayon-core {} on heist {}: pool of {threads} threads, process {}\n",
        env!("CARGO_PKG_VERSION"),
        heist::engine::VERSION,
        process::id()
    );
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        // In one piece, so that lines of other processes do not come in between.
        let _ = file.write_all(line.as_bytes());
    }
}
