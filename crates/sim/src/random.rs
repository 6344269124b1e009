//! Random numbers of a simulation: a stream for each virtual thread, all from one seed.

/// Marsaglia's xorshift generator. It is fast, and its quality suffices for a variation of work.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Returns the stream with this number.
    pub(crate) fn stream(seed: u64, number: u64) -> Self {
        // The finalizer of SplitMix64, because neighbouring states of xorshift begin with similar numbers.
        let mut x = seed.wrapping_add((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self((x ^ (x >> 31)) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
