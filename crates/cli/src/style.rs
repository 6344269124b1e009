//! Whether to use colours, and the styles of the output.
//!
//! `--color` decides. Without it, or with `auto`, a stream has colours if it is a terminal that supports
//! them, and neither `NO_COLOR` nor `TERM=dumb` is set.

use std::fmt::{self, Display, Formatter};
use std::io;

use anstream::{AutoStream, ColorChoice};

/// Adds colours to text, or leaves it unchanged if colours are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

/// Returns the paint for stdout.
pub(crate) fn out() -> Paint {
    Paint { on: AutoStream::choice(&io::stdout()) != ColorChoice::Never }
}

/// Returns the paint for stderr.
pub(crate) fn err() -> Paint {
    Paint { on: AutoStream::choice(&io::stderr()) != ColorChoice::Never }
}

/// Returns paint without colours.
#[cfg(test)]
pub(crate) fn plain() -> Paint {
    Paint { on: false }
}

/// Returns paint with colours.
#[cfg(test)]
pub(crate) fn painted() -> Paint {
    Paint { on: true }
}

impl Paint {
    /// Returns `true` if colours are on.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// Styles a heading, or the important part of a line.
    pub(crate) fn bold<T: Display>(self, text: T) -> Painted<T> {
        self.with("1", text)
    }

    /// Styles text of minor importance.
    pub(crate) fn dim<T: Display>(self, text: T) -> Painted<T> {
        self.with("2", text)
    }

    /// Styles a good result.
    pub(crate) fn good<T: Display>(self, text: T) -> Painted<T> {
        self.with("32", text)
    }

    /// Styles a bad result or an error.
    pub(crate) fn bad<T: Display>(self, text: T) -> Painted<T> {
        self.with("31;1", text)
    }

    fn with<T>(self, code: &'static str, text: T) -> Painted<T> {
        Painted { code: self.on.then_some(code), text }
    }
}

/// Text with a colour. The width and precision of a format string count visible columns: `{:>8}` is eight
/// columns with and without colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Painted<T> {
    code: Option<&'static str>,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Numbers are padded on the left by default and texts on the right, so the inner value does its own
        // padding.
        let Some(code) = self.code else { return self.text.fmt(f) };
        write!(f, "\x1b[{code}m")?;
        self.text.fmt(f)?;
        f.write_str("\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_unchanged_without_colours() {
        let paint = plain();
        assert_eq!(
            format!("{}{}{}{}", paint.bold("a"), paint.dim("b"), paint.good("c"), paint.bad("d")),
            "abcd"
        );
    }

    #[test]
    fn a_width_counts_visible_columns() {
        let paint = Paint { on: true };
        assert_eq!(format!("[{:>4}]", paint.bold("a")), "[\x1b[1m   a\x1b[0m]");
        assert_eq!(format!("[{:6.2}]", paint.good(1.0)), "[\x1b[32m  1.00\x1b[0m]");
    }
}
