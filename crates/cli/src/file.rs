//! Files that commands read and write: all of one, or an error that says what to do.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use heist_bench::record::{Record, is_newer};
use serde_json::error::Category;

use crate::exit::{Exit, Failure};
use crate::out;

/// What `heist bench --json` has written.
pub(crate) fn read_record(path: &Path) -> Result<Record, Failure> {
    let failure = |why: String| Failure {
        exit: Exit::File,
        what: format!("cannot read samples from {}", path.display()),
        why,
        advice: "Give it a file that was written by: heist bench --json FILE".into(),
    };
    let bytes = fs::read(path).map_err(|error| failure(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| match error.classify() {
        Category::Data if is_newer(&bytes) => Failure {
            advice: "Read it with that one, or measure again with this one.".into(),
            ..failure(format!("it was written by a newer heist: {error}"))
        },
        Category::Data => failure(format!("it is JSON, but no record of a run: {error}")),
        _ => failure(format!("it is not JSON: {error}")),
    })
}

/// Is it stdout that is meant?
pub(crate) fn is_stdout(path: &Path) -> bool {
    [Path::new("-"), Path::new("/dev/stdout")].contains(&path)
}

/// Prints what there is to say besides a file. If that has taken stdout, it goes to stderr, unless that is to be quiet.
pub(crate) fn print_beside(path: &Path, text: &str, quiet: bool) -> Result<(), Failure> {
    if !is_stdout(path) {
        return out::print(text);
    }
    if !quiet {
        out::note(text.trim_end());
    }
    Ok(())
}

/// Whether it could be written, before anything is done whose result would be lost. Changes nothing.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let Place::File { path: file, .. } = place(path)? else { return Ok(()) };
    let beside = beside(&file);
    let created = fs::File::create(&beside).and_then(|_| fs::remove_file(&beside));
    created.map_err(|error| refused(path, &error))
}

/// Writes a file: all of it, or, on an error, nothing, and what was there before stays. A link stays one, and a device or a pipe
/// gets what there is.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    match place(path)? {
        Place::Stdout => out::print_bytes(bytes),
        Place::Other => pour(path, bytes).map_err(|error| refused(path, &error)),
        Place::File { path: file, before } => {
            replace(&file, before, bytes).map_err(|error| refused(path, &error))
        }
    }
}

/// What a path is the name of.
enum Place {
    Stdout,
    /// What no other file can take the place of: a device, a pipe, a link to something that is not there.
    Other,
    /// A file, or nothing yet: its own name, whatever links lead to it, and its permissions.
    File {
        path: PathBuf,
        before: Option<Permissions>,
    },
}

/// Looks. The error says why nothing can be written there.
fn place(path: &Path) -> Result<Place, Failure> {
    if is_stdout(path) {
        return Ok(Place::Stdout);
    }
    let Ok(found) = fs::metadata(path) else {
        return if path.is_symlink() { Ok(Place::Other) } else { new(path) };
    };
    if found.is_dir() {
        return Err(failure(path, "it is a folder", "Name a file in it."));
    }
    if !found.is_file() {
        return Ok(Place::Other);
    }
    // Whoever may write everything is not asked by the system, but the file says that it is to stay.
    if found.permissions().readonly() {
        let advice = "Name another file, or make this one writable first.";
        return Err(failure(path, "it is there, and read-only", advice));
    }
    // Being allowed to replace it is not enough.
    let opened = OpenOptions::new().write(true).open(path);
    opened.map_err(|error| refused(path, &error))?;
    let own = path.canonicalize().map_err(|error| refused(path, &error))?;
    Ok(Place::File { path: own, before: Some(found.permissions()) })
}

/// A file that is not there.
fn new(path: &Path) -> Result<Place, Failure> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        let why = format!("there is no folder {}", folder.display());
        return Err(failure(path, &why, &format!("Make it first: mkdir -p {}", folder.display())));
    }
    Ok(Place::File { path: path.into(), before: None })
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    failure(path, &error.to_string(), "Choose another place, or make room in this one.")
}

fn failure(path: &Path, why: &str, advice: &str) -> Failure {
    Failure {
        exit: Exit::File,
        what: format!("cannot write {}", path.display()),
        why: why.into(),
        advice: advice.into(),
    }
}

/// In the same folder, so that it can be renamed.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

fn replace(path: &Path, before: Option<Permissions>, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    let replaced = fill(&beside, before, bytes).and_then(|()| fs::rename(&beside, path));
    // It may not be there; there is nothing to add to the first error.
    replaced.inspect_err(|_| drop(fs::remove_file(&beside)))
}

fn fill(path: &Path, before: Option<Permissions>, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(bytes)?;
    before.map_or(Ok(()), |before| file.set_permissions(before))?;
    file.sync_all()
}

/// A link to nothing makes what it names; nothing else is made.
fn pour(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(!path.exists()).open(path)?;
    file.write_all(bytes)?;
    file.flush()
}

#[cfg(test)]
mod tests;
