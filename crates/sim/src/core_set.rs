//! A set of cores as a bitmap.

/// The largest number of virtual cores: 256 workers, and some for producers and the main thread.
pub const MAX_CORES: usize = 320;

const WORDS: usize = MAX_CORES / 64;

/// The number of a virtual core.
pub(crate) type Core = u16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoreSet([u64; WORDS]);

impl CoreSet {
    pub(crate) const EMPTY: Self = Self([0; WORDS]);

    #[inline]
    pub(crate) fn contains(&self, core: Core) -> bool {
        self.0[usize::from(core) / 64] >> (core % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn insert(&mut self, core: Core) {
        self.0[usize::from(core) / 64] |= 1 << (core % 64);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Returns whether the set contains no core but this one.
    pub(crate) fn is_only(&self, core: Core) -> bool {
        let mut only = Self::EMPTY;
        only.insert(core);
        *self == only
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }
}

impl FromIterator<Core> for CoreSet {
    fn from_iter<I: IntoIterator<Item = Core>>(cores: I) -> Self {
        let mut set = Self::EMPTY;
        cores.into_iter().for_each(|core| set.insert(core));
        set
    }
}
