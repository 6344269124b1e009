//! Where a duel leaves what it has found: `target/heist/`, below the current directory.

use std::fs;
use std::path::{Path, PathBuf};

use heist::trace::Trace;
use heist_bench::record::Record;

use crate::commands::report;
use crate::exit::{Exit, Failure};
use crate::file;

const FOLDER: &str = "target/heist";

const PAGE: &str = "report.html";
const TRACE: &str = "trace.json";
const SAMPLES: &str = "duel.json";

/// Where everything is that was written.
pub(super) struct Files {
    pub(super) page: Option<PathBuf>,
    pub(super) trace: Option<PathBuf>,
    pub(super) samples: Option<PathBuf>,
}

/// Folders that were made for the files, the innermost first. Those that are empty in the end go again.
pub(super) struct Folder(Vec<&'static Path>);

/// Makes the folder, and looks whether the files can be written, before anything is measured: who cannot should know at once.
pub(super) fn prepare() -> Result<Folder, Failure> {
    let path = Path::new(FOLDER);
    let parts = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    let folder = Folder(parts.filter(|part| !part.exists()).collect());
    fs::create_dir_all(path).map_err(|error| Failure {
        exit: Exit::File,
        what: format!("cannot make the folder {FOLDER}"),
        why: error.to_string(),
        advice:
            "Start heist in a folder in which you may write: its files go to target/heist there."
                .to_owned(),
    })?;
    [PAGE, TRACE, SAMPLES].iter().try_for_each(|name| file::check(&path.join(name)))?;
    Ok(folder)
}

impl Drop for Folder {
    fn drop(&mut self) {
        for folder in &self.0 {
            // It fails if there is something in it, which is why it was made.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Writes the page, the trace if there is one, and the samples: all that can be, and the first failure.
pub(super) fn write(record: &Record, trace: Option<&Trace>) -> (Files, Result<(), Failure>) {
    let mut first = None;
    let mut file = |name: &str, bytes: &[u8]| {
        let path = Path::new(FOLDER).join(name);
        match file::write(&path, bytes) {
            Ok(()) => Some(path),
            Err(failure) => {
                first.get_or_insert(failure);
                None
            }
        }
    };
    let mut samples = Vec::new();
    record.write(&mut samples).expect("a vector takes everything");
    let chrome = trace.map(|trace| {
        let mut bytes = Vec::new();
        trace.write_chrome(&mut bytes).expect("a vector takes everything");
        bytes
    });
    // One of an earlier duel would be taken for one of this.
    let _ = fs::remove_file(Path::new(FOLDER).join(TRACE));
    let files = Files {
        samples: file(SAMPLES, &samples),
        trace: chrome.and_then(|bytes| file(TRACE, &bytes)),
        page: file(PAGE, report::page(record).as_bytes()),
    };
    (files, first.map_or(Ok(()), Err))
}
