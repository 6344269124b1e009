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
use std::path::Path;
use std::process::Command;

use heist::{BuildError, Builder, Counters, JoinError, JoinHandle, Panic, Pool, Stats, Strategy};

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

#[test]
fn misuse_does_not_compile() {
    match other_words() {
        Some(why) => println!("skipped: misuse_does_not_compile: {why}"),
        None => trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs"),
    }
}

/// Why this compiler would reject the same programs in other words than those that are expected.
fn other_words() -> Option<&'static str> {
    let rustc = |arg: &[&str]| {
        let output = Command::new("rustc").args(arg).output().expect("a compiler");
        String::from_utf8(output.stdout).expect("a compiler that speaks UTF-8")
    };
    if !rustc(&["--version"]).starts_with(concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"))) {
        return Some("the expected messages are those of the oldest supported Rust");
    }
    let sysroot = rustc(&["--print", "sysroot"]);
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src");
    sources.exists().then_some("with the component rust-src, messages quote the standard library")
}
