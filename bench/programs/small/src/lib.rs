//! What the programs have in common. Each prints numbers that do not depend on the number of threads.

/// Returns a number from 0 to 1 for a seed, by SplitMix64.
pub fn random(seed: u64) -> f32 {
    let z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
}

/// Returns three numbers for a seed.
pub fn triple(seed: u64) -> [f32; 3] {
    [0, 1, 2].map(|axis| random(3 * seed + axis))
}
