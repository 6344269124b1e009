//! Sources of lines, one by one or in blocks. `cutter` reads and cuts blocks, and `block` is how their lines are borrowed.

mod block;
mod cutter;
mod error;

use std::io::Read;
use std::marker::PhantomData;
use std::mem;

use super::{Filled, NoReader, Source};
use crate::pipeline::Pipeline;
use crate::pipeline::config::Config;
use crate::pipeline::control::Control;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::steps::Same;
use crate::sync::Arc;
pub use block::{BlockLines, LineBlock, LineText};
use cutter::{Cutter, RawBlock, count_line_ends, line_length, without_end};
pub use error::LineError;

/// The lines of a reader in blocks. See [`Pipeline::line_blocks`].
///
/// ```
/// use heist::pipeline::{LineBlocks, Pipeline};
///
/// fn log() -> Pipeline<LineBlocks<&'static [u8]>> {
///     Pipeline::line_blocks("one\ntwo\n".as_bytes())
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut lines = 0;
/// log().map(|block| block.count()).run(&pool, |count| lines += count)?;
/// assert_eq!(lines, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LineBlocks<R, L: ?Sized = str> {
    cutter: Cutter<R>,
    /// What comes after the last block.
    after: Filled,
    text: PhantomData<fn() -> Box<L>>,
}

/// The lines of a reader, one by one. See [`Pipeline::lines`].
///
/// ```
/// use heist::pipeline::{Lines, Pipeline};
///
/// fn log() -> Pipeline<Lines<&'static [u8]>> {
///     Pipeline::lines("one\ntwo\n".as_bytes())
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut lines = Vec::new();
/// log().ordered().run(&pool, |line| lines.push(line))?;
/// assert_eq!(lines, ["one", "two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    blocks: LineBlocks<R>,
    /// Its bytes before `at` have been returned.
    current: Option<LineBlock>,
    at: usize,
}

impl<R: Read, L: LineText + ?Sized> LineBlocks<R, L> {
    fn new(reader: R) -> Self {
        Self { cutter: Cutter::new(reader), after: Filled::More, text: PhantomData }
    }

    /// Returns the next block, or why there is none. If a line of a block is not valid, the lines before it are a block of their
    /// own, and the error comes after that one.
    fn next_block(&mut self, stop: &impl Fn() -> bool) -> Result<LineBlock<L>, Filled> {
        match mem::replace(&mut self.after, Filled::End) {
            Filled::More => {}
            ended => return Err(ended),
        }
        let cut = match self.cutter.cut(stop) {
            Err(Filled::More) => {
                self.after = Filled::More;
                return Err(Filled::More);
            }
            cut => cut?,
        };
        let (raw, failed) = if L::IS_UTF8 { checked(cut) } else { (Some(cut), None) };
        let after = failed.map_or(Filled::More, |error| Filled::Failed(error.into()));
        let Some(raw) = raw else { return Err(after) };
        self.after = after;
        let (spares, size) = (self.cutter.spares(), self.cutter.size());
        // SAFETY: the bytes have been checked, if that is required.
        Ok(unsafe { LineBlock::new(raw, spares, size) })
    }
}

/// Shortens a block to the lines before the first one that is not valid UTF-8. Returns the error if there is such a line, and the
/// block if any line is left.
fn checked(mut raw: RawBlock) -> (Option<RawBlock>, Option<LineError>) {
    let Err(error) = std::str::from_utf8(&raw.buffer[..raw.end]) else { return (Some(raw), None) };
    let valid = &raw.buffer[..error.valid_up_to()];
    let lines = count_line_ends(valid);
    raw.end = valid.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    raw.lines = lines;
    let error = LineError::InvalidUtf8 { line: raw.first_line + lines };
    ((lines > 0).then_some(raw), Some(error))
}

impl<R, L: ?Sized> Sealed for LineBlocks<R, L> {}

impl<R: Read, L: LineText + ?Sized> Source for LineBlocks<R, L> {
    type Item = LineBlock<L>;
    type Handle = ();
    type Reader = NoReader;

    fn attach(&mut self, _: &Arc<Control>) {}

    fn fill(
        &mut self,
        batch: &mut Vec<LineBlock<L>>,
        most: usize,
        stop: &impl Fn() -> bool,
    ) -> Filled {
        for _ in 0..most {
            if stop() {
                break;
            }
            match self.next_block(stop) {
                Ok(block) => batch.push(block),
                Err(ended) => return ended,
            }
        }
        Filled::More
    }
}

impl<R: Read> Lines<R> {
    /// Returns the next line, or why there is none.
    fn next_line(&mut self, stop: &impl Fn() -> bool) -> Result<String, Filled> {
        loop {
            if let Some(block) = &self.current {
                let rest = &block.text()[self.at..];
                if !rest.is_empty() {
                    let line = &rest[..line_length(rest.as_bytes())];
                    self.at += line.len();
                    return Ok(line[..without_end(line.as_bytes()).len()].to_owned());
                }
            }
            self.read_more(stop)?;
        }
    }

    /// Reads the next block, because all lines of the current one have been returned.
    #[cold]
    fn read_more(&mut self, stop: &impl Fn() -> bool) -> Result<(), Filled> {
        // The next block may use the buffer of the current one.
        (self.current, self.at) = (None, 0);
        self.current = Some(self.blocks.next_block(stop)?);
        Ok(())
    }
}

impl<R> Sealed for Lines<R> {}

impl<R: Read> Source for Lines<R> {
    type Item = String;
    type Handle = ();
    type Reader = NoReader;

    fn attach(&mut self, _: &Arc<Control>) {}

    fn fill(&mut self, batch: &mut Vec<String>, most: usize, stop: &impl Fn() -> bool) -> Filled {
        for _ in 0..most {
            if stop() {
                break;
            }
            match self.next_line(stop) {
                Ok(line) => batch.push(line),
                Err(ended) => return ended,
            }
        }
        Filled::More
    }
}

impl<R: Read> Pipeline<Lines<R>> {
    /// Makes a pipeline from the lines of a reader, without their line endings (`\n` or `\r\n`). An error of the reader
    /// ends the run, and so does a line that is not valid UTF-8 or longer than 256 MiB: see [`LineError`]. If the pipeline is
    /// [ordered](Self::ordered), the lines before it are delivered first. If not, some of them may be dropped.
    ///
    /// The pipeline reads large blocks, so the reader need not be buffered. Each line is a `String`. If little is done
    /// with it, [`line_blocks`](Pipeline::line_blocks) is several times as fast, because it allocates nothing for a
    /// line, and finds the lines on all workers.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let numbers = Pipeline::lines("1\n2\n3\n".as_bytes()).try_map(|line| line.parse::<u32>());
    /// let mut sum = 0;
    /// numbers.run(&pool, |n| sum += n)?;
    /// assert_eq!(sum, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lines(reader: R) -> Self {
        let source = Lines { blocks: LineBlocks::new(reader), current: None, at: 0 };
        Self { source, steps: Same, config: Config::new() }
    }
}

impl<R: Read> Pipeline<LineBlocks<R>> {
    /// Makes a pipeline from the lines of a reader in blocks of some hundred kilobytes. The lines of a block are borrowed
    /// from it: see [`LineBlock`].
    ///
    /// An error of the reader ends the run, and so does a line that is not valid UTF-8, or does not fit into the
    /// [largest block](Pipeline::largest_block): see [`LineError`]. If the pipeline is [ordered](Pipeline::ordered), the lines
    /// before it are delivered first. If not, some of them may be dropped.
    ///
    /// Each block is a [batch](Pipeline::batch) of its own. It ends with the last line end that one read of the reader has
    /// brought, so that the lines of a slow reader are not held back. The reader need not be buffered.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let log = "error: a\nok\nerror: b\n";
    /// let mut errors = 0;
    /// Pipeline::line_blocks(log.as_bytes())
    ///     .map(|block| block.lines().filter(|line| line.starts_with("error")).count())
    ///     .run(&pool, |count| errors += count)?;
    /// assert_eq!(errors, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn line_blocks(reader: R) -> Self {
        blocks_of(reader)
    }
}

impl<R: Read> Pipeline<LineBlocks<R, [u8]>> {
    /// Like [`line_blocks`](Pipeline::line_blocks), for lines of any bytes.
    ///
    /// ```
    /// use heist::pipeline::{LineBlock, Pipeline};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut last = Vec::new();
    /// Pipeline::byte_line_blocks(&b"a\n\xff\n"[..]).run(&pool, |block: LineBlock<[u8]>| {
    ///     last = block.lines().last().unwrap().to_owned();
    /// })?;
    /// assert_eq!(last, [0xff]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn byte_line_blocks(reader: R) -> Self {
        blocks_of(reader)
    }
}

impl<R: Read, L: LineText + ?Sized, G> Pipeline<LineBlocks<R, L>, G> {
    /// Sets the size of a block in bytes. The default is 256 KiB. A block is larger if a line is, and smaller if a read of the
    /// reader returns less. No block is larger than the [largest block](Self::largest_block).
    ///
    /// The number of blocks in flight is the number of [batches](Self::in_flight): by default, some hundred of them may be in
    /// memory together. Use [`in_flight`](Self::in_flight) or [`weigh`](Self::weigh) to bound that.
    ///
    /// ```
    /// use heist::pipeline::{LineBlock, Pipeline};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let blocks = Pipeline::line_blocks("aa\nbb\ncc\n".as_bytes()).block_size(4);
    /// let report = blocks.run(&pool, |block: LineBlock| assert_eq!(block.text().len(), 3))?;
    /// assert_eq!(report.batches, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.source.cutter.set_size(bytes);
        self
    }

    /// Sets up to how many bytes a block grows for a line that is longer than a [block](Self::block_size). The default is
    /// 256 MiB, or the size of a block if that is more. A line that is longer, with its line end, ends the run with
    /// [`LineError::TooLong`].
    ///
    /// ```
    /// use heist::pipeline::{LineBlock, Pipeline};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let endless = std::io::repeat(b'x');
    /// let blocks = Pipeline::line_blocks(endless).largest_block(1 << 20);
    /// let error = blocks.run(&pool, |_: LineBlock| ()).unwrap_err();
    /// assert!(error.to_string().contains("line 1 is longer than 1048576 bytes"));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn largest_block(mut self, bytes: usize) -> Self {
        self.source.cutter.set_largest(bytes);
        self
    }
}

fn blocks_of<R: Read, L: LineText + ?Sized>(reader: R) -> Pipeline<LineBlocks<R, L>> {
    Pipeline { source: LineBlocks::new(reader), steps: Same, config: Config::new() }.batch(1)
}
