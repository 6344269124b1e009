//! Cuts what a reader returns into blocks of whole lines.

use std::io::{self, ErrorKind, Read};

use super::error::LineError;
use crate::pipeline::run::BoxError;
use crate::pipeline::source::Filled;
use crate::sync::{Arc, Mutex, lock};

/// The default size of a block. Small enough for the processor's own cache, and large enough that the cost of a batch does not
/// count. A guess; other sizes were not measured.
const BLOCK: usize = 256 << 10;
/// The default limit up to which a block grows for a long line. More would rather be a file without lines.
const LARGEST_BLOCK: usize = 256 << 20;
/// Buffers that are kept for later blocks, at most. A guess: more than are in use between two pulls.
const MAX_SPARES: usize = 32;
/// They have no more bytes than this, unless it is a single one: as many as that number of buffers of the default size.
const MAX_SPARE_BYTES: usize = MAX_SPARES * BLOCK;
/// A block that fills less than one in this many parts of its buffer is copied, so that the buffer is not kept for so little.
const SPARSE: usize = 4;
/// The least room for a single read.
const LEAST_READ: usize = 4 << 10;

/// Buffers that no block uses any more.
#[derive(Debug, Default)]
pub(super) struct Spares(Mutex<Vec<Vec<u8>>>);

impl Spares {
    /// Takes a buffer back, if it has the usual size.
    pub(super) fn give(&self, buffer: Vec<u8>, size: usize) {
        if buffer.len() == size {
            let mut spares = lock(&self.0);
            if spares.len() < (MAX_SPARE_BYTES / size.max(1)).clamp(1, MAX_SPARES) {
                spares.push(buffer);
            }
        }
    }

    fn take(&self) -> Option<Vec<u8>> {
        lock(&self.0).pop()
    }
}

/// Bytes that are whole lines.
pub(super) struct RawBlock {
    pub(super) buffer: Vec<u8>,
    /// The number of bytes of `buffer` that belong to the block.
    pub(super) end: usize,
    /// The number of the first line in the source, counted from 1.
    pub(super) first_line: u64,
    /// The number of lines.
    pub(super) lines: u64,
}

/// A reader whose lines are cut into blocks.
#[derive(Debug)]
pub(super) struct Cutter<R> {
    reader: R,
    /// All of it is initialised. The first `filled` bytes have been read and not yet returned.
    buffer: Vec<u8>,
    filled: usize,
    /// The size of a block, as it was set.
    size: usize,
    /// The limit up to which a block grows, if it was set.
    largest: Option<usize>,
    next_line: u64,
    /// The reader has no more bytes.
    ended: bool,
    spares: Arc<Spares>,
}

impl<R> Cutter<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            filled: 0,
            size: BLOCK,
            largest: None,
            next_line: 1,
            ended: false,
            spares: Arc::default(),
        }
    }

    /// Sets the size of a block. Nothing has been read.
    pub(super) fn set_size(&mut self, size: usize) {
        self.size = size.max(1);
    }

    /// Sets the limit up to which a block grows. Nothing has been read.
    pub(super) fn set_largest(&mut self, largest: usize) {
        self.largest = Some(largest.max(1));
    }

    pub(super) fn spares(&self) -> &Arc<Spares> {
        &self.spares
    }

    /// Returns the size of a block, which is within the limit whichever of the two was set first.
    pub(super) fn size(&self) -> usize {
        self.size.min(self.largest())
    }

    fn largest(&self) -> usize {
        self.largest.unwrap_or(LARGEST_BLOCK.max(self.size))
    }
}

impl<R: Read> Cutter<R> {
    /// Returns the next block, which is not empty, or why there is none: [`Filled::More`] if it is to `stop`.
    ///
    /// A block ends with the last line end that is there after a read. So the lines of a slow reader are not held back until a
    /// block is full. Before each read it looks whether it is to stop, because a reader may go on for ever without a line end.
    pub(super) fn cut(&mut self, stop: &impl Fn() -> bool) -> Result<RawBlock, Filled> {
        loop {
            if self.ended && self.filled == 0 {
                return Err(Filled::End);
            }
            if self.ended {
                return Ok(self.split(self.filled));
            }
            if stop() {
                return Err(Filled::More);
            }
            let read = match self.read() {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.fail(error)),
            };
            let fresh = self.filled..self.filled + read;
            if fresh.end > self.buffer.len() {
                let (line, limit) = (self.next_line, self.largest());
                return Err(self.fail(LineError::TooLong { line, limit }));
            }
            self.filled = fresh.end;
            self.ended = read == 0;
            // What was there before has no line end.
            if let Some(last) = self.buffer[fresh.clone()].iter().rposition(|byte| *byte == b'\n') {
                return Ok(self.split(fresh.start + last + 1));
            }
        }
    }

    /// Reads behind what has been read of an incomplete line. If the largest block is full, it reads one byte more, which has
    /// no place: only the end of the source makes that block a line.
    fn read(&mut self) -> io::Result<usize> {
        if self.buffer.is_empty() {
            self.buffer = self.fresh_buffer(0);
        }
        let length = self.buffer.len();
        if self.filled == length && length >= self.largest() {
            return self.reader.read(&mut [0]);
        }
        if self.filled == length {
            self.buffer.resize(length.saturating_mul(2).min(self.largest()), 0);
        }
        self.reader.read(&mut self.buffer[self.filled..])
    }

    /// Drops an incomplete line: nothing comes after an error.
    fn fail(&mut self, error: impl Into<BoxError>) -> Filled {
        (self.ended, self.filled) = (true, 0);
        Filled::Failed(error.into())
    }

    /// Splits off the first bytes, which are whole lines.
    fn split(&mut self, end: usize) -> RawBlock {
        let is_sparse = end <= self.buffer.len() / SPARSE;
        let buffer = if is_sparse {
            let copy = self.buffer[..end].to_vec();
            self.buffer.copy_within(end..self.filled, 0);
            copy
        } else {
            let mut next = self.fresh_buffer(self.filled - end);
            next[..self.filled - end].copy_from_slice(&self.buffer[end..self.filled]);
            std::mem::replace(&mut self.buffer, next)
        };
        self.filled -= end;
        let bytes = &buffer[..end];
        let lines = count_line_ends(bytes) + u64::from(!bytes.ends_with(b"\n"));
        let first_line = self.next_line;
        self.next_line += lines;
        RawBlock { buffer, end, first_line, lines }
    }

    /// Returns a buffer with room for so many bytes and a read.
    fn fresh_buffer(&self, bytes: usize) -> Vec<u8> {
        let size = self.size();
        if bytes < size {
            return self.spares.take().unwrap_or_else(|| vec![0; size]);
        }
        vec![0; bytes.saturating_add(LEAST_READ).min(self.largest())]
    }
}

/// Counts the line ends in a block.
pub(super) fn count_line_ends(bytes: &[u8]) -> u64 {
    // In parts whose counts fit into a byte, so that the compiler uses the processor's vectors of bytes.
    let count = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
    bytes.chunks(usize::from(u8::MAX)).map(|part| u64::from(count(part))).sum()
}

/// Returns the length of the first line with its line end, if it has one.
#[inline]
pub(super) fn line_length(mut bytes: &[u8]) -> usize {
    // The standard library searches with the processor's vectors here, and a slice never fails to be read.
    io::BufRead::skip_until(&mut bytes, b'\n').unwrap_or(bytes.len())
}

/// Returns the line without its line end.
#[inline]
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    match line {
        [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => line,
        line => line,
    }
}

#[cfg(all(test, not(any(loom, shuttle, sim))))]
mod tests {
    use super::*;

    /// Returns how many buffers of this size are kept.
    fn kept(size: usize) -> usize {
        let spares = Spares::default();
        (0..2 * MAX_SPARES).for_each(|_| spares.give(vec![0; size], size));
        std::iter::from_fn(|| spares.take()).count()
    }

    #[test]
    fn spare_buffers_are_bounded_by_number_and_bytes() {
        assert_eq!(kept(1), MAX_SPARES);
        assert_eq!(kept(BLOCK), MAX_SPARES);
        assert_eq!(kept(4 * BLOCK), MAX_SPARES / 4);
        assert_eq!(kept(MAX_SPARE_BYTES + 1), 1);
    }
}
