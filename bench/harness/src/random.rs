//! Pseudo-random numbers that are the same in every run.

/// Returns a number for a seed, by Steele, Lea and Flood's SplitMix64: neighbouring seeds give unrelated numbers.
#[inline(always)]
pub fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns `count` numbers.
pub fn numbers(count: usize) -> impl Iterator<Item = u64> {
    (1..=count as u64).map(mix)
}
