//! The contract of the types: what may be sent to another thread, what may be shared and what may be
//! cloned. Everything else does not compile.
//!
//! The messages in `compile_fail` were recorded with the Rust version that `heist_testkit::compile_fail`
//! names. After a change to a name in them, record them again with `TRYBUILD=overwrite cargo test -p
//! heist-deque --test auto_traits` and read the difference.

#![cfg(all(feature = "std", not(any(loom, shuttle))))]

mod common;

use std::cell::Cell;
use std::panic::RefUnwindSafe;

use heist_deque::{CapacityError, Full, Injector, Steal};

use common::{Flavour, for_every_flavour};

#[test]
fn misuse_does_not_compile() {
    match heist_testkit::compile_fail::messages_differ() {
        Some(why) => println!("skipped: misuse_does_not_compile: {why}"),
        None => trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs"),
    }
}

for_every_flavour! {
    worker,
    stealer,
}

/// `Send` but not `Sync`: items need not be `Sync`.
type Sendable = Cell<u8>;

fn is_send<T: Send>() {}
fn is_send_and_sync<T: Send + Sync>() {}
fn is_clone<T: Clone>() {}
fn is_ref_unwind_safe<T: RefUnwindSafe>() {}

fn worker<F: Flavour>() {
    is_send::<F::Worker<Sendable>>();
}

fn stealer<F: Flavour>() {
    is_send_and_sync::<F::Stealer<Sendable>>();
    is_clone::<F::Stealer<Sendable>>();
}

#[test]
fn injector() {
    is_send_and_sync::<Injector<Sendable>>();
    is_ref_unwind_safe::<Injector<Sendable>>();
}

/// The types that carry items are `Send` and `Sync` if the items are.
#[test]
fn outcomes() {
    is_send::<Steal<Sendable>>();
    is_send::<Full<Sendable>>();
    is_send_and_sync::<Steal<u8>>();
    is_send_and_sync::<CapacityError>();
}
