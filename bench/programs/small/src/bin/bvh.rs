//! Frames of a game in which everything moves: builds the bounding volume hierarchy of 20,000 boxes anew in each, with the
//! crate bvh, and casts 2,000 rays.

use bvh::aabb::{Aabb, Bounded};
use bvh::bounding_hierarchy::{BHShape, BoundingHierarchy};
use bvh::bvh::Bvh;
use bvh::ray::Ray;
use heist_bench_small_programs::triple;
use nalgebra::{Point3, Vector3};
use rayon::prelude::*;

const FRAMES: u64 = 20;
const BOXES: u64 = 20_000;
const RAYS: u64 = 2_000;

struct Shape {
    corner: Point3<f32>,
    velocity: Vector3<f32>,
    node: usize,
}

impl Bounded<f32, 3> for Shape {
    fn aabb(&self) -> Aabb<f32, 3> {
        Aabb::with_bounds(self.corner, self.corner + Vector3::repeat(1.0))
    }
}

impl BHShape<f32, 3> for Shape {
    fn set_bh_node_index(&mut self, node: usize) {
        self.node = node;
    }
    fn bh_node_index(&self) -> usize {
        self.node
    }
}

fn main() {
    let at = |seed| Point3::from(triple(seed)) * 100.0;
    let shape =
        |place| Shape { corner: at(place), velocity: at(place + BOXES) - at(place), node: 0 };
    let mut shapes: Vec<Shape> = (0..BOXES).map(shape).collect();
    for frame in 0..FRAMES {
        shapes.par_iter_mut().for_each(|shape| shape.corner += shape.velocity * 0.01);
        let hierarchy = Bvh::build_par(&mut shapes);
        let hits = |ray| {
            let from = at(ray);
            let ray = Ray::new(from, at(ray + RAYS) - from);
            hierarchy.traverse(&ray, &shapes).len()
        };
        let total: usize = (0..RAYS).into_par_iter().map(hits).sum();
        println!("{frame}: {total}");
    }
}
