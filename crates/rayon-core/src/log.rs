//! Shows that this crate is in use: appends a line for each pool to the file that `HEIST_RAYON_LOG` names.

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::process;

/// Returns the path of the file, if the environment variable is set.
pub(crate) fn path() -> Option<OsString> {
    env::var_os("HEIST_RAYON_LOG").filter(|path| !path.is_empty())
}

/// Appends a line. The first thread of a pool calls this. Errors are ignored.
pub(crate) fn append(path: OsString, threads: usize) {
    let line = format!(
        "rayon-core {} on heist {}: pool of {threads} threads, process {}\n",
        env!("CARGO_PKG_VERSION"),
        heist::engine::VERSION,
        process::id()
    );
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        // One write for the whole line, so that the lines of several processes do not mix.
        let _ = file.write_all(line.as_bytes());
    }
}
