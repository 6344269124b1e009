//! Items change threads, so a worker goes to another thread only if its items may. (Different
//! items, because the compiler reports the same error only once.)

use heist_deque::{bounded, growable, locked};
use std::rc::Rc;
use std::thread;

fn main() {
    let (worker, _) = bounded::new::<Rc<u8>>(8).unwrap();
    thread::spawn(move || worker.pop().is_some());

    let (worker, _) = growable::new::<Rc<u16>>();
    thread::spawn(move || worker.pop().is_some());

    let (worker, _) = locked::new::<Rc<u32>>();
    thread::spawn(move || worker.pop().is_some());
}
