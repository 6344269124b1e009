//! Formats JSON with one line for every field and for every object of a list, so that two files can be compared by eye.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// A formatter that puts everything nested more deeply on the line on which it began.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The number of open objects and lists.
    depth: usize,
    /// Whether the current list, itself a field, has contained an object.
    listed: bool,
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        let listed = self.depth == 1 && std::mem::take(&mut self.listed);
        out.write_all(if listed { b"\n  ]" } else { b"]" })
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.listed |= self.depth == 3;
        out.write_all(if self.depth == 3 { b"\n    {" } else { b"{" })
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        out.write_all(if self.depth == 0 { b"\n}\n" } else { b"}" })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b"," })?;
        out.write_all(if self.depth == 1 { b"\n  " } else { b"" })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(if self.depth == 1 { b": " } else { b":" })
    }
}
