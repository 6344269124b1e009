//! Files that commands read and write: completely, or with an error that says what to do.

use std::fs::{self, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

use heist_bench::record::{Record, is_newer};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;

use crate::commands::sim::record::SimRecord;
use crate::exit::{Exit, Failure};
use crate::out;

/// Reads a file that `heist bench --json` has written.
pub(crate) fn read_record(path: &Path) -> Result<Record, Failure> {
    parse_record(path, &read(path)?)
}

/// Reads the bytes of a file of samples.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| unreadable(path, error.to_string()))
}

/// Reads a record from the bytes of a file.
pub(crate) fn parse_record(path: &Path, bytes: &[u8]) -> Result<Record, Failure> {
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Data if SimRecord::is_in(bytes) => Failure {
            advice: "Show it with: heist report FILE".into(),
            ..unreadable(path, "it is of a simulation, which has points instead".into())
        },
        Category::Data if is_trace(bytes) => Failure {
            advice: format!("Summarize it with: heist trace --summary {}", path.display()),
            ..unreadable(path, "it is a trace, which has no samples".into())
        },
        Category::Data if is_newer(bytes) => newer(path, &error),
        Category::Data => {
            unreadable(path, format!("it is JSON, but not a benchmark record: {error}"))
        }
        _ => unreadable(path, format!("it is not JSON: {error}")),
    })
}

/// Returns `true` if the bytes are those of a trace, of this program or of another one.
pub(crate) fn is_trace(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Trace {
        #[serde(rename = "traceEvents")]
        _events: IgnoredAny,
    }
    serde_json::from_slice::<Trace>(bytes).is_ok()
}

/// Returns `true` if the bytes are those of a benchmark record, even if of another version.
pub(crate) fn has_samples(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Samples {
        #[serde(rename = "samples")]
        _samples: IgnoredAny,
    }
    serde_json::from_slice::<Samples>(bytes).is_ok()
}

/// Returns the failure for a file that this version cannot read.
pub(crate) fn newer(path: &Path, error: &serde_json::Error) -> Failure {
    Failure {
        advice: "Read it with the newer version, or measure again with this one.".into(),
        ..unreadable(path, format!("it was written by a newer heist: {error}"))
    }
}

fn unreadable(path: &Path, why: String) -> Failure {
    Failure {
        exit: Exit::File,
        what: format!("cannot read samples from {}", path.display()),
        why,
        advice: "Use a file that was written by: heist bench --json FILE".into(),
    }
}

/// Returns `true` if the path means stdout.
pub(crate) fn is_stdout(path: &Path) -> bool {
    [Path::new("-"), Path::new("/dev/stdout")].contains(&path)
}

/// Returns `true` if writing to `other` would replace `one`.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let own = |path: &Path| path.canonicalize().ok();
    !is_stdout(other) && own(one).is_some_and(|one| own(other) == Some(one))
}

/// Prints a text that accompanies a file. If the file went to stdout, the text goes to stderr, unless
/// `quiet`.
pub(crate) fn print_beside(path: &Path, text: &str, quiet: bool) -> Result<(), Failure> {
    if !is_stdout(path) {
        return out::print(text);
    }
    if !quiet {
        out::note(text.trim_end());
    }
    Ok(())
}

/// Checks that a file can be written, before a command produces a result that would be lost. Changes nothing.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let Place::File { path: file, .. } = place(path)? else { return Ok(()) };
    let temporary = temporary_name(&file);
    let created = fs::File::create_new(&temporary).and_then(|_| fs::remove_file(&temporary));
    created.map_err(|error| refused(path, &error))
}

/// Writes a file completely, or leaves the previous contents in place if that fails. A symbolic link is
/// followed and stays a link. Devices and pipes receive the bytes directly.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    match place(path)? {
        Place::Stdout => out::print_bytes(bytes),
        Place::Other => write_through(path, bytes).map_err(|error| refused(path, &error)),
        Place::File { path: file, before } => {
            replace(&file, before, bytes).map_err(|error| refused(path, &error))
        }
    }
}

/// What a path refers to.
enum Place {
    Stdout,
    /// Something that cannot be replaced by renaming a file: a device or a pipe.
    Other,
    /// A regular file, or a name that does not exist yet: the path after following links, and the permissions
    /// of an existing file.
    File {
        path: PathBuf,
        before: Option<Permissions>,
    },
}

/// Finds out what a path refers to. The error says why nothing can be written there.
fn place(path: &Path) -> Result<Place, Failure> {
    if is_stdout(path) { Ok(Place::Stdout) } else { not_stdout(path) }
}

fn not_stdout(path: &Path) -> Result<Place, Failure> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) => return missing(path, &error),
    };
    if found.is_dir() {
        return Err(failure(path, "it is a folder", "Name a file inside it."));
    }
    if !found.is_file() {
        return Ok(Place::Other);
    }
    // The superuser could write it all the same, but the file is marked as one to keep.
    if found.permissions().readonly() {
        let advice = "Name another file, or make this one writable first.";
        return Err(failure(path, "it exists and is read-only", advice));
    }
    // Permission to replace the file through its folder is not enough: the file itself must be writable.
    let opened = OpenOptions::new().write(true).open(path);
    opened.map_err(|error| refused(path, &error))?;
    let own = path.canonicalize().map_err(|error| refused(path, &error))?;
    Ok(Place::File { path: own, before: Some(found.permissions()) })
}

/// Handles a path without metadata: it does not exist, or is not accessible. A link is followed to its
/// target; a link to itself is another error.
fn missing(path: &Path, error: &io::Error) -> Result<Place, Failure> {
    let absent = error.kind() == io::ErrorKind::NotFound;
    if absent && let Ok(target) = fs::read_link(path) {
        return not_stdout(&path.parent().unwrap_or(path).join(target));
    }
    let place = new_file(path)?;
    if absent { Ok(place) } else { Err(refused(path, error)) }
}

/// Returns the place of a file that does not exist yet.
fn new_file(path: &Path) -> Result<Place, Failure> {
    // A path must end with the name of a file, not with a slash or dots.
    let whole = path.as_os_str().as_encoded_bytes();
    if !path.file_name().is_some_and(|name| whole.ends_with(name.as_encoded_bytes())) {
        return Err(failure(
            path,
            "this is not the name of a file",
            "Name a file, for example a/b.json.",
        ));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        let why = format!("there is no folder {}", folder.display());
        return Err(failure(
            path,
            &why,
            &format!("Create it first: mkdir -p {}", folder.display()),
        ));
    }
    Ok(Place::File { path: path.into(), before: None })
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    failure(
        path,
        &error.to_string(),
        "Choose another place, or check permissions and free space there.",
    )
}

fn failure(path: &Path, why: &str, advice: &str) -> Failure {
    Failure {
        exit: Exit::File,
        what: format!("cannot write {}", path.display()),
        why: why.into(),
        advice: advice.into(),
    }
}

/// Returns an unpredictable name in the same folder, so that the file can be renamed. It is never too long.
fn temporary_name(path: &Path) -> PathBuf {
    let number = RandomState::new().hash_one(process::id());
    path.with_file_name(format!(".heist-{number:x}.part"))
}

fn replace(path: &Path, before: Option<Permissions>, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_name(path);
    let replaced = write_new(&temporary, before, bytes).and_then(|()| fs::rename(&temporary, path));
    // The file may not exist, and another error would add nothing to the first.
    replaced.inspect_err(|_| drop(fs::remove_file(&temporary)))
}

fn write_new(path: &Path, before: Option<Permissions>, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(bytes)?;
    before.map_or(Ok(()), |before| file.set_permissions(before))?;
    file.sync_all()
}

/// Writes to something that exists, without creating it.
fn write_through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(bytes)?;
    file.flush()
}

#[cfg(test)]
mod tests;
