//! Builds k-d trees of 100,000 points with the crate kd-tree, which joins at every node, and looks for nearest neighbours in
//! each.

use heist_bench_small_programs::triple;
use kd_tree::KdTree;
use rayon::prelude::*;

const TREES: u64 = 16;
const POINTS: u64 = 100_000;
const QUESTIONS: u64 = 10_000;

fn main() {
    for round in 0..TREES {
        let of = |place| triple(round * (POINTS + QUESTIONS) + place);
        let tree = KdTree::par_build_by_ordered_float((0..POINTS).map(of).collect());
        let nearest =
            |place| tree.nearest(&of(place)).expect("the tree has points").squared_distance;
        let distances: Vec<f32> =
            (POINTS..POINTS + QUESTIONS).into_par_iter().map(nearest).collect();
        println!("{round}: {}", distances.iter().sum::<f32>());
    }
}
