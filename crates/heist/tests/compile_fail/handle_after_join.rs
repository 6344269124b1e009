//! A result is yielded once: after a join, no handle is left.

use heist::JoinHandle;

fn again(handle: JoinHandle<u8>) {
    let _result = handle.join();
    handle.is_finished();
}

fn main() {
    let _ = again;
}
