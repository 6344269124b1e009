//! The destination of a batch is a worker of this crate: only there does `has_room` stay true.

use heist_deque::Destination;

struct Forgetful;

impl Destination<u8> for Forgetful {
    fn has_room(&self, _ahead: usize) -> bool {
        true
    }

    fn put(&self, _item: u8) {}
}

fn main() {}
