//! A result is yielded once: there is no second handle, and none is left after a join.

use heist::{JoinHandle, Pool};

fn again(handle: JoinHandle<u8>) {
    let _second = handle.clone();
    let _result = handle.join();
    handle.is_finished();
}

fn other(pool: Pool) {
    let _second = pool.clone();
}

fn main() {
    let _ = (again, other);
}
