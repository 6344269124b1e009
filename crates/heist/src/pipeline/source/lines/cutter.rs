//! Cuts what a reader returns into blocks of whole lines.

use std::io::{self, ErrorKind, Read};

use super::error::LineError;
use crate::pipeline::run::BoxError;
use crate::sync::{Arc, Mutex, lock};

/// The default size of a block. Small enough for the processor's own cache, and large enough that the cost of a batch does not
/// count: 64 KiB to 512 KiB are equally fast.
const BLOCK: usize = 256 << 10;
/// The default limit up to which a block grows for a long line. More would rather be a file without lines.
const LARGEST_BLOCK: usize = 256 << 20;
/// Buffers that are kept for later blocks, at most. A guess: more than are in use between two pulls.
const MAX_SPARES: usize = 32;
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
            if spares.len() < MAX_SPARES {
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
    size: usize,
    largest: usize,
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
            largest: LARGEST_BLOCK,
            next_line: 1,
            ended: false,
            spares: Arc::default(),
        }
    }

    /// Sets the size of a block. Nothing has been read.
    pub(super) fn set_size(&mut self, size: usize) {
        self.size = size.max(1);
        self.largest = self.largest.max(self.size);
    }

    /// Sets the limit up to which a block grows. Nothing has been read.
    pub(super) fn set_largest(&mut self, largest: usize) {
        self.largest = largest.max(1);
        self.size = self.size.min(self.largest);
    }

    pub(super) fn spares(&self) -> &Arc<Spares> {
        &self.spares
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }
}

impl<R: Read> Cutter<R> {
    /// Returns the next block, which is not empty, or `None` at the end.
    ///
    /// A block ends with the last line end that is there after a read. So the lines of a slow reader are not held back until a
    /// block is full.
    pub(super) fn cut(&mut self) -> Result<Option<RawBlock>, BoxError> {
        loop {
            if self.ended {
                return Ok((self.filled > 0).then(|| self.split(self.filled)));
            }
            self.make_room()?;
            let read = match self.reader.read(&mut self.buffer[self.filled..]) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.end(error)),
            };
            let fresh = self.filled..self.filled + read;
            self.filled = fresh.end;
            self.ended = read == 0;
            // What was there before has no line end.
            if let Some(last) = self.buffer[fresh.clone()].iter().rposition(|byte| *byte == b'\n') {
                return Ok(Some(self.split(fresh.start + last + 1)));
            }
        }
    }

    /// Makes room for a read behind what has been read of an incomplete line.
    fn make_room(&mut self) -> Result<(), BoxError> {
        if self.buffer.is_empty() {
            self.buffer = self.fresh_buffer(0);
        }
        if self.filled < self.buffer.len() {
            return Ok(());
        }
        if self.filled >= self.largest {
            let error = LineError::TooLong { line: self.next_line, limit: self.largest };
            return Err(self.end(error));
        }
        let larger = self.buffer.len().saturating_mul(2).min(self.largest);
        self.buffer.resize(larger, 0);
        Ok(())
    }

    /// Drops an incomplete line: nothing comes after an error.
    fn end(&mut self, error: impl Into<BoxError>) -> BoxError {
        (self.ended, self.filled) = (true, 0);
        error.into()
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
        if bytes < self.size {
            return self.spares.take().unwrap_or_else(|| vec![0; self.size]);
        }
        vec![0; bytes.saturating_add(LEAST_READ).min(self.largest)]
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
