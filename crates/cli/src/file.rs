//! Files that commands read and write: all of one, or an error that says what to do.

use std::fs::{self, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

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

/// Would writing the second replace the first?
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let own = |path: &Path| path.canonicalize().ok();
    !is_stdout(other) && own(one).is_some_and(|one| own(other) == Some(one))
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
    let created = fs::File::create_new(&beside).and_then(|_| fs::remove_file(&beside));
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
    /// What no other file can take the place of: a device, a pipe.
    Other,
    /// A file, or nothing yet: its own name, whatever links lead to it, and its permissions.
    File {
        path: PathBuf,
        before: Option<Permissions>,
    },
}

/// Looks. The error says why nothing can be written there.
fn place(path: &Path) -> Result<Place, Failure> {
    if is_stdout(path) { Ok(Place::Stdout) } else { not_stdout(path) }
}

fn not_stdout(path: &Path) -> Result<Place, Failure> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) => return missing(path, &error),
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

/// What is not there, or not to be seen. A link names what it leads to; one that leads to itself is another error.
fn missing(path: &Path, error: &io::Error) -> Result<Place, Failure> {
    let absent = error.kind() == io::ErrorKind::NotFound;
    if absent && let Ok(target) = fs::read_link(path) {
        return not_stdout(&path.parent().unwrap_or(path).join(target));
    }
    let place = new(path)?;
    if absent { Ok(place) } else { Err(refused(path, error)) }
}

/// A file that is not there.
fn new(path: &Path) -> Result<Place, Failure> {
    // The name of a file is what a path ends with: no slash, no dots.
    let whole = path.as_os_str().as_encoded_bytes();
    if !path.file_name().is_some_and(|name| whole.ends_with(name.as_encoded_bytes())) {
        return Err(failure(path, "that is no name of a file", "Name a file, as in a/b.json."));
    }
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

/// In the same folder, so that it can be renamed. Nobody can foresee the name, and no name is too long for it.
fn beside(path: &Path) -> PathBuf {
    let number = RandomState::new().hash_one(process::id());
    path.with_file_name(format!(".heist-{number:x}.part"))
}

fn replace(path: &Path, before: Option<Permissions>, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    let replaced = fill(&beside, before, bytes).and_then(|()| fs::rename(&beside, path));
    // It may not be there; there is nothing to add to the first error.
    replaced.inspect_err(|_| drop(fs::remove_file(&beside)))
}

fn fill(path: &Path, before: Option<Permissions>, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(bytes)?;
    before.map_or(Ok(()), |before| file.set_permissions(before))?;
    file.sync_all()
}

/// Makes nothing.
fn pour(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(bytes)?;
    file.flush()
}

#[cfg(test)]
mod tests;
