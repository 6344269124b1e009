//! All cache lines of a simulation, by address.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::line::{Line, LineUse};

/// The size of a cache line is 2^6 bytes.
pub(crate) const LINE_BITS: u32 = 6;

/// The lines of 4 KiB. Neighbouring lines are often used one after the other.
const PAGE_LINES: usize = 64;

struct Page {
    /// The order in which pages were first used. Unlike addresses, it is the same in every run.
    number: usize,
    lines: [Line; PAGE_LINES],
}

/// All cache lines that were ever used, by address.
#[derive(Default)]
pub(crate) struct Directory {
    index: HashMap<usize, usize, BuildHasherDefault<AddressHasher>>,
    pages: Vec<Box<Page>>,
    /// The page of the last access, and its position.
    last: Option<(usize, usize)>,
}

impl Directory {
    /// Returns the line with this number, which is its address divided by its size.
    #[inline]
    pub(crate) fn line(&mut self, number: usize) -> &mut Line {
        let page = number / PAGE_LINES;
        let position = match self.last {
            Some((last, position)) if last == page => position,
            _ => self.find(page),
        };
        &mut self.pages[position].lines[number % PAGE_LINES]
    }

    fn find(&mut self, page: usize) -> usize {
        let pages = &mut self.pages;
        let position = *self.index.entry(page).or_insert_with(|| {
            pages.push(Box::new(Page {
                number: pages.len(),
                lines: [const { Line::NEW }; PAGE_LINES],
            }));
            pages.len() - 1
        });
        self.last = Some((page, position));
        position
    }

    /// Returns how each line was used, with a number that is the same in every run.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (usize, &LineUse)> {
        self.pages.iter().flat_map(|page| {
            let first = page.number * PAGE_LINES;
            page.lines.iter().enumerate().map(move |(n, line)| (first + n, &line.use_count))
        })
    }

    /// Forgets how lines were used, but not where they are.
    pub(crate) fn forget_uses(&mut self) {
        for line in self.pages.iter_mut().flat_map(|page| &mut page.lines) {
            line.use_count = LineUse::default();
        }
    }
}

/// Hashes an address by one multiplication: every access to another page looks up its page.
#[derive(Clone, Copy, Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
    }
}
