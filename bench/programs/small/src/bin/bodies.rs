//! A pile of 1,000 boxes falls on the ground: steps of the physics engine rapier3d with its feature `parallel`.

use heist_bench_small_programs::triple;
use rapier3d::prelude::*;

const STEPS: usize = 120;
const SIDE: u64 = 10;

fn main() {
    let mut world = PhysicsWorld::new();
    let ground = ColliderBuilder::cuboid(50.0, 0.5, 50.0);
    world.insert(RigidBodyBuilder::fixed(), ground);
    for place in 0..SIDE.pow(3) {
        let [x, y, z] =
            [place % SIDE, place / (SIDE * SIDE), place / SIDE % SIDE].map(|at| at as f32);
        let [shift, _, turn] = triple(place);
        let at = Vector::new(1.1 * x + 0.3 * shift, 1.5 + 1.2 * y, 1.1 * z + 0.3 * turn);
        world.insert(
            RigidBodyBuilder::dynamic().translation(at),
            ColliderBuilder::cuboid(0.5, 0.5, 0.5),
        );
    }
    for _ in 0..STEPS {
        world.step();
    }
    let heights: Vec<f32> = world.bodies.iter().map(|(_, body)| body.translation().y).collect();
    println!("{} boxes, {}", heights.len(), heights.iter().sum::<f32>());
}
