//! The contract of the types: what may be sent to another thread and what may be shared. Everything else
//! does not compile.
//!
//! The messages in `compile_fail` were recorded with the Rust version that `heist_testkit::compile_fail`
//! names. After a change to a name in them, record them again with `TRYBUILD=overwrite cargo test -p heist
//! --test auto_traits` and read the difference.

#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::error::Error;
use std::fmt::{Debug, Display};

use heist::{
    BuildError, Builder, Counters, Full, JoinError, JoinHandle, Panic, Pin, Pool, PoolDump,
    PoolHandle, ScopedJoinHandle, Stats, Strategy,
};

#[test]
fn misuse_does_not_compile() {
    match heist_testkit::compile_fail::messages_differ() {
        Some(why) => println!("skipped: misuse_does_not_compile: {why}"),
        None => trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs"),
    }
}

/// `Send` but not `Sync`: results of tasks need not be `Sync`.
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
    is_send_and_sync::<PoolHandle>();
    is_debug::<PoolHandle>();
    is_send_and_sync::<PoolDump>();
    is_debug::<PoolDump>();
    is_send::<Builder>();
    is_debug::<Builder>();
    is_send_and_sync::<Pin>();
    is_debug::<Pin>();
}

#[test]
fn handle() {
    fn is_future<T, F: Future<Output = Result<T, JoinError>>>() {}
    is_send_and_sync::<JoinHandle<Sendable>>();
    is_unpin::<JoinHandle<Sendable>>();
    is_unpin::<JoinHandle<std::marker::PhantomPinned>>();
    is_future::<Sendable, JoinHandle<Sendable>>();
    is_send_and_sync::<ScopedJoinHandle<'_, Sendable>>();
    is_debug::<ScopedJoinHandle<'_, Sendable>>();
}

#[test]
fn errors() {
    is_error::<BuildError>();
    is_error::<JoinError>();
    is_error::<Full<fn()>>();
    is_debug::<Full<Sendable>>();
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

#[test]
fn pieces() {
    use heist::parallel::{Chunks, ChunksMut, Enumerate, VecPieces, Zip};
    is_send::<VecPieces<Sendable>>();
    is_send::<ChunksMut<'_, Sendable>>();
    is_send_and_sync::<Chunks<'_, u8>>();
    is_send_and_sync::<Zip<Enumerate<&[u8]>, std::ops::Range<u8>>>();
    is_debug::<(VecPieces<u8>, Chunks<'_, u8>, ChunksMut<'_, u8>, Zip<Enumerate<&[u8]>, &[u8]>)>();
}

/// The signatures that programs rely on.
#[test]
fn objects() {
    type Task = Box<dyn FnOnce() + Send>;
    let _: fn(&Pool, Task) -> JoinHandle<Task> = |pool, task| pool.spawn(move || task);
    let _: fn(&'static Pool) -> JoinHandle<&'static Pool> = |pool| pool.spawn(move || pool);
}

#[cfg(feature = "futures")]
#[test]
fn future_handle() {
    use heist::FutureHandle;

    fn is_future<T, F: Future<Output = Result<T, JoinError>>>() {}
    is_send_and_sync::<FutureHandle<Sendable>>();
    is_unpin::<FutureHandle<std::marker::PhantomPinned>>();
    is_future::<Sendable, FutureHandle<Sendable>>();
    is_debug::<FutureHandle<Sendable>>();
}
