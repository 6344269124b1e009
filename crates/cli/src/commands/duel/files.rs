//! The files of a duel, in `target/heist/` below the current directory.

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

/// The paths of the files that were written.
pub(super) struct Files {
    pub(super) page: Option<PathBuf>,
    pub(super) trace: Option<PathBuf>,
    pub(super) samples: Option<PathBuf>,
}

/// The folders that were created for the files, innermost first. Those that are still empty are removed on
/// drop.
pub(super) struct Folder(Vec<&'static Path>);

/// Creates the folder and checks that the files can be written. This happens before the measurement, so that
/// the user learns of a problem immediately.
pub(super) fn prepare() -> Result<Folder, Failure> {
    let path = Path::new(FOLDER);
    let parts = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    let folder = Folder(parts.filter(|part| !part.exists()).collect());
    fs::create_dir_all(path).map_err(|error| Failure {
        exit: Exit::File,
        what: format!("cannot create the folder {FOLDER}"),
        why: error.to_string(),
        advice:
            "Run heist in a folder where you have write permission: it creates target/heist there."
                .to_owned(),
    })?;
    [PAGE, TRACE, SAMPLES].iter().try_for_each(|name| file::check(&path.join(name)))?;
    Ok(folder)
}

impl Drop for Folder {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Removal fails if the folder is not empty, which is intended.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Writes the page, the trace if there is one, and the samples. Tries to write all of them, and returns the
/// first failure.
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
    record.write(&mut samples).expect("writing to a vector does not fail");
    let chrome = trace.map(|trace| {
        let mut bytes = Vec::new();
        trace.write_chrome(&mut bytes).expect("writing to a vector does not fail");
        bytes
    });
    // The trace of an earlier duel must not be mistaken for one of this.
    let _ = fs::remove_file(Path::new(FOLDER).join(TRACE));
    let files = Files {
        samples: file(SAMPLES, &samples),
        trace: chrome.and_then(|bytes| file(TRACE, &bytes)),
        page: file(PAGE, report::page(record).as_bytes()),
    };
    (files, first.map_or(Ok(()), Err))
}
