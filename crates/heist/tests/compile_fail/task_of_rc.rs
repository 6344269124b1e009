//! A task runs on another thread, so what it captures must be sent. (Different values, because the
//! compiler reports the same error only once.)

use heist::Pool;
use std::rc::Rc;

fn main() {
    let pool = Pool::builder().build().unwrap();

    let captured = Rc::new(1_u8);
    pool.spawn(move || drop(captured));

    let captured = Rc::new(1_u16);
    pool.spawn_batch([move || drop(captured)]);

    let captured = Rc::new(1_u32);
    pool.install(move || drop(captured));

    let captured = Rc::new(1_u64);
    heist::spawn(move || drop(captured));
}
