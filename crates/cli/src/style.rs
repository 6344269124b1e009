//! Whether to use colours, and the few that there are.
//!
//! `--color` decides; without it, or with `auto`, a stream has colours if it is a terminal that has some, and neither `NO_COLOR` nor
//! `TERM=dumb` says otherwise.

use std::fmt::{self, Display, Formatter};
use std::io;

use anstream::{AutoStream, ColorChoice};

/// Paints, or leaves a text as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

/// For what goes to stdout.
pub(crate) fn out() -> Paint {
    Paint { on: AutoStream::choice(&io::stdout()) != ColorChoice::Never }
}

/// For what goes to stderr.
pub(crate) fn err() -> Paint {
    Paint { on: AutoStream::choice(&io::stderr()) != ColorChoice::Never }
}

/// For tests of what is printed.
#[cfg(test)]
pub(crate) fn plain() -> Paint {
    Paint { on: false }
}

/// The same, with colours.
#[cfg(test)]
pub(crate) fn painted() -> Paint {
    Paint { on: true }
}

impl Paint {
    /// For those who do their own painting.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// A heading, or what matters in a line.
    pub(crate) fn bold<T: Display>(self, text: T) -> Painted<T> {
        self.with("1", text)
    }

    /// What may be skipped.
    pub(crate) fn dim<T: Display>(self, text: T) -> Painted<T> {
        self.with("2", text)
    }

    /// What is as it should be.
    pub(crate) fn good<T: Display>(self, text: T) -> Painted<T> {
        self.with("32", text)
    }

    /// What is not.
    pub(crate) fn bad<T: Display>(self, text: T) -> Painted<T> {
        self.with("31;1", text)
    }

    fn with<T>(self, code: &'static str, text: T) -> Painted<T> {
        Painted { code: self.on.then_some(code), text }
    }
}

/// A text with its colour. Width and precision of a format count what is seen: `{:>8}` is eight columns with colours and without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Painted<T> {
    code: Option<&'static str>,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Numbers are padded on the left by default, texts on the right: so the inner value pads itself.
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
    fn off_is_as_it_was() {
        let paint = plain();
        assert_eq!(
            format!("{}{}{}{}", paint.bold("a"), paint.dim("b"), paint.good("c"), paint.bad("d")),
            "abcd"
        );
    }

    #[test]
    fn a_width_counts_what_is_seen() {
        let paint = Paint { on: true };
        assert_eq!(format!("[{:>4}]", paint.bold("a")), "[\x1b[1m   a\x1b[0m]");
        assert_eq!(format!("[{:6.2}]", paint.good(1.0)), "[\x1b[32m  1.00\x1b[0m]");
    }
}
