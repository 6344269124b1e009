//! Output to stdout and stderr that works in pipes.

use std::env;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use crate::exit::{Exit, Failure};

/// Prints to stdout and flushes. If the reader has closed the pipe (`heist bench --list | head -1`), the
/// failure ends the command silently and with success. A command that also writes files therefore writes them
/// first.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// Like [`print`], for bytes that need not be text.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| refused(&error))
}

/// Prints a line to stderr: progress and errors. A failure to print it is ignored.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Makes text from a file safe for a terminal and for a table: replaces control characters and escapes the
/// separator of cells.
pub(crate) fn harmless(text: &str) -> String {
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(printable).collect::<String>().replace('|', r"\|")
}

/// Returns `true` if stderr is a terminal that can move its cursor.
pub(crate) fn is_drawable() -> bool {
    !is_dumb(env::var_os("TERM").as_deref()) && io::stderr().is_terminal()
}

/// Judges a terminal by the value of `TERM`.
fn is_dumb(terminal: Option<&OsStr>) -> bool {
    terminal.is_none_or(|name| name == "dumb" || name.is_empty())
}

/// Returns the failure for an error of stdout.
pub(crate) fn refused(error: &io::Error) -> Failure {
    // Windows reports a closed pipe as ERROR_NO_DATA, not as a broken pipe.
    let reader_is_gone = matches!(error.kind(), ErrorKind::BrokenPipe)
        || cfg!(windows) && error.raw_os_error() == Some(232);
    Failure {
        exit: if reader_is_gone { Exit::Done } else { Exit::File },
        what: "cannot print the result".to_owned(),
        why: error.to_string(),
        advice: "Check that the disk that stdout is redirected to is not full.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_failure() {
        assert_eq!(refused(&ErrorKind::BrokenPipe.into()).exit, Exit::Done);
    }

    #[test]
    fn text_of_a_file_cannot_leave_its_cell() {
        assert_eq!(harmless("a\x1b[31m\0b\nc|d\u{9b}é"), r"a�[31m�b�c\|d�é");
    }

    #[test]
    fn a_full_disk_is_a_failure() {
        assert_eq!(refused(&ErrorKind::StorageFull.into()).exit, Exit::File);
    }

    #[test]
    fn a_terminal_without_a_name_is_not_drawable() {
        assert!(is_dumb(None) && is_dumb(Some("".as_ref())) && is_dumb(Some("dumb".as_ref())));
        assert!(!is_dumb(Some("xterm".as_ref())));
    }
}
