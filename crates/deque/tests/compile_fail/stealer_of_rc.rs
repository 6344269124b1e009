//! Items change threads, so a stealer goes to another thread only if its items may. (Different
//! items, because the compiler reports the same error only once.)

use heist_deque::{bounded, growable, locked};
use std::rc::Rc;
use std::thread;

fn main() {
    let (_, stealer) = bounded::new::<Rc<u8>>(8).unwrap();
    thread::spawn(move || stealer.steal().is_success());

    let (_, stealer) = growable::new::<Rc<u16>>();
    thread::spawn(move || stealer.steal().is_success());

    let (_, stealer) = locked::new::<Rc<u32>>();
    thread::spawn(move || stealer.steal().is_success());
}
