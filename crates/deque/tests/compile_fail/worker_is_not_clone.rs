//! A worker has one owner: there is no second one.

use heist_deque::{bounded, growable, locked};

fn main() {
    let (worker, _) = bounded::new::<u8>(8).unwrap();
    let _second = worker.clone();

    let (worker, _) = growable::new::<u8>();
    let _second = worker.clone();

    let (worker, _) = locked::new::<u8>();
    let _second = worker.clone();
}
