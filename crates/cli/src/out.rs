//! What is printed, so that it pipes well.

use std::env;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use crate::exit::{Exit, Failure};

/// On stdout, at once. If nobody reads any more (`heist bench --list | head -1`) it fails in a way that ends the command in silence
/// and with success: a command that also writes files does that first.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// The same of what may be no text.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| refused(&error))
}

/// On stderr, as a line: progress, and what went wrong. Whether anybody reads it does not matter.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Text of a file, which may be anybody's, as a terminal and a table can have it: no control characters, and no end of a cell.
pub(crate) fn harmless(text: &str) -> String {
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(printable).collect::<String>().replace('|', r"\|")
}

/// Is stderr a terminal on which one can draw?
pub(crate) fn is_drawable() -> bool {
    !is_dumb(env::var_os("TERM").as_deref()) && io::stderr().is_terminal()
}

/// By its name.
fn is_dumb(terminal: Option<&OsStr>) -> bool {
    terminal.is_none_or(|name| name == "dumb" || name.is_empty())
}

/// What to say of text that stdout does not take.
pub(crate) fn refused(error: &io::Error) -> Failure {
    // Windows calls a pipe that nobody reads any more closed, not broken.
    let nobody_reads = matches!(error.kind(), ErrorKind::BrokenPipe)
        || cfg!(windows) && error.raw_os_error() == Some(232);
    Failure {
        exit: if nobody_reads { Exit::Done } else { Exit::File },
        what: "cannot print the result".to_owned(),
        why: error.to_string(),
        advice: "Is the disk full that stdout goes to?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_is_no_failure() {
        assert_eq!(refused(&ErrorKind::BrokenPipe.into()).exit, Exit::Done);
    }

    #[test]
    fn text_of_a_file_cannot_leave_its_cell() {
        assert_eq!(harmless("a\x1b[31m\0b\nc|d\u{9b}é"), r"a�[31m�b�c\|d�é");
    }

    #[test]
    fn a_full_disk_is() {
        assert_eq!(refused(&ErrorKind::StorageFull.into()).exit, Exit::File);
    }

    #[test]
    fn a_terminal_without_a_name_is_dumb() {
        assert!(is_dumb(None) && is_dumb(Some("".as_ref())) && is_dumb(Some("dumb".as_ref())));
        assert!(!is_dumb(Some("xterm".as_ref())));
    }
}
