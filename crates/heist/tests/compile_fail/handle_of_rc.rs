//! A handle can be sent to another thread only if its result can.

use heist::JoinHandle;
use std::rc::Rc;

fn is_send<T: Send>() {}

fn main() {
    is_send::<JoinHandle<Rc<u8>>>();
}
