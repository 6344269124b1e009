//! A worker has one owner: no other thread may push or pop through a reference to it.

use heist_deque::{bounded, growable, locked};
use std::thread;

fn main() {
    let (worker, _) = bounded::new::<u8>(8).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| worker.pop());
        worker.push(1).unwrap();
    });

    let (worker, _) = growable::new::<u8>();
    thread::scope(|scope| {
        scope.spawn(|| worker.pop());
        worker.push(1);
    });

    let (worker, _) = locked::new::<u8>();
    thread::scope(|scope| {
        scope.spawn(|| worker.pop());
        worker.push(1);
    });
}
