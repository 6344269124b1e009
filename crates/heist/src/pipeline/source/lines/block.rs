//! Blocks of lines, from which the lines are borrowed.

use std::marker::PhantomData;
use std::{fmt, mem};

use super::cutter::{RawBlock, Spares, line_length, without_end};
use crate::pipeline::sealed::Sealed;
use crate::sync::Arc;

/// What the lines of a [`LineBlock`] are: `str` or `[u8]`. The trait cannot be implemented outside of this crate.
///
/// ```
/// use heist::pipeline::{LineBlock, LineText, Pipeline};
///
/// /// Counts lines, whatever they consist of.
/// fn count<L: LineText + ?Sized>(block: LineBlock<L>) -> usize {
///     block.lines().count()
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut lines = 0;
/// Pipeline::line_blocks("a\nb\n".as_bytes()).map(count).run(&pool, |count| lines += count)?;
/// Pipeline::byte_line_blocks(&b"\xff\n"[..]).map(count).run(&pool, |count| lines += count)?;
/// assert_eq!(lines, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait LineText: Sealed + 'static {
    /// Whether the bytes must be valid UTF-8.
    #[doc(hidden)]
    const IS_UTF8: bool;

    #[doc(hidden)]
    fn bytes(&self) -> &[u8];

    /// Returns the bytes as text.
    ///
    /// # Safety
    ///
    /// They are valid UTF-8, if [`IS_UTF8`](Self::IS_UTF8).
    #[doc(hidden)]
    unsafe fn of(bytes: &[u8]) -> &Self;
}

impl Sealed for str {}
impl Sealed for [u8] {}

impl LineText for str {
    const IS_UTF8: bool = true;

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    #[inline]
    unsafe fn of(bytes: &[u8]) -> &Self {
        // SAFETY: the caller guarantees that the bytes are valid UTF-8.
        unsafe { std::str::from_utf8_unchecked(bytes) }
    }
}

impl LineText for [u8] {
    const IS_UTF8: bool = false;

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }

    #[inline]
    unsafe fn of(bytes: &[u8]) -> &Self {
        bytes
    }
}

/// Some whole lines: an item of [`Pipeline::line_blocks`](crate::pipeline::Pipeline::line_blocks) and
/// [`Pipeline::byte_line_blocks`](crate::pipeline::Pipeline::byte_line_blocks).
///
/// The lines are borrowed from the block. It is not empty.
///
/// ```
/// use heist::pipeline::{LineBlock, Pipeline};
///
/// fn longest(block: LineBlock) -> usize {
///     block.lines().map(str::len).max().unwrap_or(0)
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut most = 0;
/// let lengths = Pipeline::line_blocks("one\nthree\n".as_bytes()).map(longest);
/// lengths.run(&pool, |length| most = most.max(length))?;
/// assert_eq!(most, 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LineBlock<L: LineText + ?Sized = str> {
    /// The first `end` bytes are whole lines, and valid UTF-8 if `L` is `str`.
    buffer: Vec<u8>,
    end: usize,
    first_line: u64,
    count: u64,
    /// Where the buffer goes, if it has this size.
    spares: Arc<Spares>,
    size: usize,
    text: PhantomData<fn() -> Box<L>>,
}

impl<L: LineText + ?Sized> LineBlock<L> {
    /// Makes a block.
    ///
    /// # Safety
    ///
    /// The bytes of the block are valid UTF-8, if [`LineText::IS_UTF8`].
    pub(super) unsafe fn new(raw: RawBlock, spares: &Arc<Spares>, size: usize) -> Self {
        let RawBlock { buffer, end, first_line, lines } = raw;
        let spares = Arc::clone(spares);
        Self { buffer, end, first_line, count: lines, spares, size, text: PhantomData }
    }

    /// Returns the lines, without their line endings (`\n` or `\r\n`).
    ///
    /// ```
    /// use heist::pipeline::{LineBlock, Pipeline};
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let text = &b"one\r\n\ntwo"[..];
    /// let mut lines = Vec::new();
    /// Pipeline::line_blocks(text).run(&pool, |block: LineBlock| {
    ///     lines.extend(block.lines().map(str::to_owned));
    /// })?;
    /// assert_eq!(lines, ["one", "", "two"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn lines(&self) -> BlockLines<'_, L> {
        BlockLines { rest: self.text().bytes(), text: PhantomData }
    }

    /// Returns the lines with their numbers, counted from 1 at the beginning of the source.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut found = Vec::new();
    /// Pipeline::line_blocks("a\nb\nc\n".as_bytes())
    ///     .map_batch(|blocks| {
    ///         let lines = blocks.iter().flat_map(|block| block.numbered_lines());
    ///         lines.filter(|(_, line)| *line == "b").map(|(number, _)| number).next()
    ///     })
    ///     .run(&pool, |number| found.extend(number))?;
    /// assert_eq!(found, [2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn numbered_lines(&self) -> impl Iterator<Item = (u64, &L)> {
        (self.first_line..).zip(self.lines())
    }

    /// Returns all lines with their line endings. Only the last line of the source may have none.
    ///
    /// ```
    /// use heist::pipeline::{LineBlock, Pipeline};
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let mut copy = String::new();
    /// Pipeline::line_blocks("a\nb".as_bytes())
    ///     .ordered()
    ///     .run(&pool, |block: LineBlock| copy.push_str(block.text()))?;
    /// assert_eq!(copy, "a\nb");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn text(&self) -> &L {
        // SAFETY: by the invariant of `buffer`, the bytes are valid UTF-8 if `L` is `str`.
        unsafe { L::of(&self.buffer[..self.end]) }
    }

    /// Returns the number of the first line, counted from 1.
    ///
    /// ```
    /// use heist::pipeline::{LineBlock, Pipeline};
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let blocks = Pipeline::line_blocks("a\nb\n".as_bytes());
    /// blocks.run(&pool, |block: LineBlock| assert_eq!(block.first_line(), 1))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first_line(&self) -> u64 {
        self.first_line
    }

    /// Returns the number of lines in the block.
    ///
    /// ```
    /// use heist::pipeline::{LineBlock, Pipeline};
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let blocks = Pipeline::line_blocks("a\nb\n".as_bytes());
    /// blocks.run(&pool, |block: LineBlock| assert_eq!(block.count(), 2))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl<L: LineText + ?Sized> Drop for LineBlock<L> {
    fn drop(&mut self) {
        self.spares.give(mem::take(&mut self.buffer), self.size);
    }
}

impl<L: LineText + ?Sized> fmt::Debug for LineBlock<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineBlock")
            .field("first_line", &self.first_line)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl<'b, L: LineText + ?Sized> IntoIterator for &'b LineBlock<L> {
    type Item = &'b L;
    type IntoIter = BlockLines<'b, L>;

    fn into_iter(self) -> BlockLines<'b, L> {
        self.lines()
    }
}

/// The lines of a block: see [`LineBlock::lines`].
///
/// ```
/// use heist::pipeline::{BlockLines, LineBlock, Pipeline};
///
/// fn words(lines: BlockLines<'_, str>) -> usize {
///     lines.map(|line| line.split(' ').count()).sum()
/// }
///
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let mut count = 0;
/// let counts = Pipeline::line_blocks("two words\n".as_bytes()).map(|block| words(block.lines()));
/// counts.run(&pool, |words| count += words)?;
/// assert_eq!(count, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BlockLines<'b, L: LineText + ?Sized = str> {
    /// Whole lines; valid UTF-8 if `L` is `str`.
    rest: &'b [u8],
    text: PhantomData<&'b L>,
}

impl<'b, L: LineText + ?Sized> Iterator for BlockLines<'b, L> {
    type Item = &'b L;

    #[inline]
    fn next(&mut self) -> Option<&'b L> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = self.rest.split_at(line_length(self.rest));
        self.rest = rest;
        // SAFETY: by the invariant of `rest`, it is valid UTF-8 if `L` is `str`; and it is split at ASCII characters only.
        Some(unsafe { L::of(without_end(line)) })
    }
}

impl<L: LineText + ?Sized> std::iter::FusedIterator for BlockLines<'_, L> {}

impl<L: LineText + ?Sized> fmt::Debug for BlockLines<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockLines").finish_non_exhaustive()
    }
}
