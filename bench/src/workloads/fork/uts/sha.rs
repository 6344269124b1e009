//! The sample trees T1 and T3, as the authors of the benchmark define them.
//!
//! The state of a node is the SHA-1 hash of its parent's state and its own number. The last word of the state,
//! without the sign, decides how many children it has.

use super::Tree;

/// The initial state of SHA-1.
const INITIAL: State = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

type State = [u32; 5];

pub(super) struct Node {
    state: State,
    depth: u32,
}

impl Node {
    /// Returns the root: the hash of the seed after sixteen zero bytes.
    fn root(seed: u32) -> Self {
        Self { state: hash([0, 0, 0, 0, seed]), depth: 0 }
    }

    #[inline(always)]
    fn child(&self, index: u32) -> Self {
        let [a, b, c, d, e] = self.state;
        Self { state: hash([a, b, c, d, e, index]), depth: self.depth + 1 }
    }

    /// Returns the state as a fraction, from zero to below one.
    #[inline(always)]
    fn probability(&self) -> f64 {
        f64::from(self.state[4] & (u32::MAX >> 1)) / f64::from(1_u32 << 31)
    }
}

/// Returns the hash of a message that fits into one block with its padding: a one bit, and its length in bits.
#[inline(always)]
fn hash<const WORDS: usize>(message: [u32; WORDS]) -> State {
    let mut block = [0; 64];
    for (bytes, word) in block.as_chunks_mut().0.iter_mut().zip(message) {
        *bytes = word.to_be_bytes();
    }
    block[4 * WORDS] = 0x80;
    block[56..].copy_from_slice(&(32 * WORDS as u64).to_be_bytes());
    let mut state = INITIAL;
    sha1::block_api::compress(&mut state, &[block]);
    state
}

/// A geometric tree of fixed shape: down to some depth, every node has four children on average.
#[derive(Clone, Copy)]
pub(super) struct T1;

impl T1 {
    const SEED: u32 = 19;
    const BRANCHING: f64 = 4.0;
    const DEPTH: u32 = if cfg!(test) { 4 } else { 10 };
}

impl Tree for T1 {
    type Node = Node;

    const NODES: u64 = if cfg!(test) { 944 } else { 4_130_071 };

    fn root(self) -> Node {
        Node::root(Self::SEED)
    }

    #[inline(always)]
    fn children(self, node: &Node) -> u32 {
        if node.depth >= Self::DEPTH {
            return 0;
        }
        let end = 1.0 / (1.0 + Self::BRANCHING);
        ((1.0 - node.probability()).ln() / (1.0 - end).ln()).floor() as u32
    }

    #[inline(always)]
    fn child(self, node: &Node, index: u32) -> Node {
        node.child(index)
    }
}

/// A binomial tree: below the root, a node has eight children or none, with the same probability at every depth.
#[derive(Clone, Copy)]
pub(super) struct T3;

impl T3 {
    const SEED: u32 = 42;
    const ROOT: u32 = if cfg!(test) { 20 } else { 2_000 };
    const CHILDREN: u32 = 8;
    const PROBABILITY: f64 = 0.124_875;
}

impl Tree for T3 {
    type Node = Node;

    const NODES: u64 = if cfg!(test) { 6_213 } else { 4_112_897 };

    fn root(self) -> Node {
        Node::root(Self::SEED)
    }

    #[inline(always)]
    fn children(self, node: &Node) -> u32 {
        match node.depth {
            0 => Self::ROOT,
            _ if node.probability() < Self::PROBABILITY => Self::CHILDREN,
            _ => 0,
        }
    }

    #[inline(always)]
    fn child(self, node: &Node, index: u32) -> Node {
        node.child(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of "abcd", as other implementations compute it.
    #[test]
    fn a_hash_is_that_of_its_bytes() {
        let expected = [0x81fe_8bfe, 0x8757_6c3e, 0xcb22_426f, 0x8e57_8473, 0x8291_7acf];
        assert_eq!(hash([u32::from_be_bytes(*b"abcd")]), expected);
    }
}
