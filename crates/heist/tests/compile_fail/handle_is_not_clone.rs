//! A result is yielded once: there is no second handle. And a pool has one owner, which stops it.

use heist::{JoinHandle, Pool};

fn handle(handle: JoinHandle<u8>) {
    let _second = handle.clone();
}

fn pool(pool: Pool) {
    let _second = pool.clone();
}

fn main() {
    let _ = (handle, pool);
}
