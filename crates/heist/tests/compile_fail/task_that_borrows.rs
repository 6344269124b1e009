//! A task may outlive the caller, so it must not borrow from it; `install` may, because it waits.

use heist::Pool;

fn main() {
    let pool = Pool::builder().build().unwrap();
    let text = String::from("of the caller");
    pool.install(|| println!("{text}"));
    pool.spawn(|| println!("{text}"));
    pool.spawn_batch([|| println!("{text}")]);
    heist::spawn(|| println!("{text}"));
}
