//! The contract of the types: what may go to another thread, what may be shared; and that the rest
//! does not compile.
//!
//! The messages in `compile_fail` are those of the stable toolchain of `rust-version`. After a
//! change that renames what they mention: `TRYBUILD=overwrite cargo test --test auto_traits`, and
//! read the difference.

#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::error::Error;
use std::fmt::{Debug, Display};

use heist::{BuildError, Builder, Counters, JoinError, JoinHandle, Panic, Pool, Stats, Strategy};

#[path = "../../deque/tests/common/misuse.rs"]
mod misuse;

/// May be sent, but not shared: what a task needs of its result is `Send` alone.
type Sendable = Cell<u8>;

fn is_send<T: Send>() {}
fn is_send_and_sync<T: Send + Sync>() {}
fn is_unpin<T: Unpin>() {}
fn is_debug<T: Debug>() {}
fn is_plain<T: Copy + Eq + Debug + Default>() {}
fn is_error<T: Error + Debug + Display + Send + Sync + 'static>() {}

#[test]
fn pool() {
    is_send_and_sync::<Pool>();
    is_debug::<Pool>();
    is_send::<Builder>();
    is_debug::<Builder>();
}

#[test]
fn handle() {
    fn is_future<T, F: Future<Output = Result<T, JoinError>>>() {}
    is_send_and_sync::<JoinHandle<Sendable>>();
    is_unpin::<JoinHandle<Sendable>>();
    is_unpin::<JoinHandle<std::marker::PhantomPinned>>();
    is_future::<Sendable, JoinHandle<Sendable>>();
}

#[test]
fn errors() {
    is_error::<BuildError>();
    is_error::<JoinError>();
    is_send_and_sync::<Panic>();
    is_debug::<Panic>();
}

#[test]
fn values() {
    is_plain::<Counters>();
    is_plain::<Strategy>();
    is_send_and_sync::<Stats>();
    is_debug::<Stats>();
}

/// A task may give a lot or little, and the pool may be behind any pointer.
#[test]
fn objects() {
    type Task = Box<dyn FnOnce() + Send>;
    let _: fn(&Pool, Task) -> JoinHandle<Task> = |pool, task| pool.spawn(move || task);
    let _: fn(&'static Pool) -> JoinHandle<&'static Pool> = |pool| pool.spawn(move || pool);
}
