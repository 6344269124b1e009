//! A batch goes to a worker of this crate, for which "there is room" stays true.

use heist_deque::Destination;

struct Forgetful;

impl Destination<u8> for Forgetful {
    fn has_room(&self, _ahead: usize) -> bool {
        true
    }

    fn put(&self, _item: u8) {}
}

fn main() {}
