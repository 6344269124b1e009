//! A tree like T3, but with random numbers that take only a few multiplications each.

use harness::random::mix;

use super::Tree;

#[derive(Clone, Copy)]
pub(super) struct Light;

/// The seed, chosen from some dozens because its tree is about as large as T1 and T3. It has 1,364 levels.
pub(in crate::workloads::fork) const SEED: u64 = 320_000;

pub(in crate::workloads::fork) const ROOT: u32 = if cfg!(test) { 20 } else { 2_000 };

pub(in crate::workloads::fork) const CHILDREN: u32 = 8;

/// A node has children if its number is below this, which is the case for a little less than one in eight.
pub(in crate::workloads::fork) const LIMIT: u64 = 0x1ff6 << 48;

pub(in crate::workloads::fork) const NODES: u64 = if cfg!(test) { 245 } else { 3_682_601 };

impl Tree for Light {
    /// The number of the node.
    type Node = u64;

    const NODES: u64 = NODES;

    fn root(self) -> u64 {
        SEED
    }

    #[inline(always)]
    fn children(self, &node: &u64) -> u32 {
        match node {
            SEED => ROOT,
            _ if node < LIMIT => CHILDREN,
            _ => 0,
        }
    }

    #[inline(always)]
    fn child(self, &node: &u64, index: u32) -> u64 {
        mix(node.wrapping_add(u64::from(index) + 1))
    }
}
