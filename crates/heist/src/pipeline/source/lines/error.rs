//! What is wrong with a line.

use std::error::Error;
use std::fmt;

/// A line that [`Pipeline::lines`](crate::pipeline::Pipeline::lines) or
/// [`Pipeline::line_blocks`](crate::pipeline::Pipeline::line_blocks) cannot return.
///
/// It is the source of the [`PipelineError`](crate::pipeline::PipelineError) that ends the run.
///
/// ```
/// use std::error::Error;
/// use heist::pipeline::{LineError, Pipeline};
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let error = Pipeline::lines(&b"good\n\xff\n"[..]).run(&pool, |_| ()).unwrap_err();
/// let cause = error.source().unwrap().downcast_ref::<LineError>();
/// assert_eq!(cause, Some(&LineError::InvalidUtf8 { line: 2 }));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    /// The line is not valid UTF-8.
    InvalidUtf8 {
        /// The number of the line, counted from 1.
        line: u64,
    },
    /// The line does not fit into the largest block.
    TooLong {
        /// The number of the line, counted from 1.
        line: u64,
        /// The number of bytes in the largest block.
        limit: usize,
    },
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidUtf8 { line } => write!(
                f,
                "line {line} is not valid UTF-8: use `byte_line_blocks` for lines of any bytes"
            ),
            Self::TooLong { line, limit } => write!(
                f,
                "line {line} is longer than {limit} bytes: use `line_blocks` or `byte_line_blocks`, and pass more to \
                 `largest_block`, if this is a line"
            ),
        }
    }
}

impl Error for LineError {}
