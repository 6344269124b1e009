//! What is wrong with a line.

use std::error::Error;
use std::fmt;

/// A line that [`Pipeline::lines`](crate::pipeline::Pipeline::lines) or
/// [`Pipeline::line_blocks`](crate::pipeline::Pipeline::line_blocks) cannot return.
///
/// It is the error in the [`PipelineError::Failed`](crate::pipeline::PipelineError::Failed) that ends the run.
///
/// ```
/// use heist::pipeline::{LineError, Pipeline, PipelineError};
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let run = Pipeline::lines(&b"good\n\xff\n"[..]).run(&pool, |_| ());
/// let Err(PipelineError::Failed { source, .. }) = run else { panic!("the second line is not UTF-8") };
/// assert_eq!(source.downcast_ref(), Some(&LineError::InvalidUtf8 { line: 2 }));
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
