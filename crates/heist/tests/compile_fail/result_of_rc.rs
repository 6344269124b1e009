//! A result comes back from another thread, so it must be sent.

use heist::Pool;
use std::rc::Rc;

fn main() {
    let pool = Pool::builder().build().unwrap();
    pool.spawn(|| Rc::new(1_u8));
    pool.spawn_batch([|| Rc::new(1_u16)]);
    pool.install(|| Rc::new(1_u32));
}
