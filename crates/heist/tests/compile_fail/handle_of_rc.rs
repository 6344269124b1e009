//! A handle is as good as the result that it stands for.

use heist::JoinHandle;
use std::rc::Rc;

fn is_send<T: Send>() {}

fn main() {
    is_send::<JoinHandle<Rc<u8>>>();
}
