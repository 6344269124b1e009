//! How much of the stack a level of recursion takes, through each function that runs other jobs while it waits.

use std::hint::black_box;
use std::sync::Mutex;

use rayon_core::{ThreadPool, broadcast, in_place_scope, scope, spawn, yield_now};

use crate::common::with_pool;

const LEVELS: usize = 32;

/// The place on the stack of each level, from the first to the last.
static PLACES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

#[inline(never)]
fn mark() {
    let here = 0_u8;
    PLACES.lock().unwrap().push((&raw const *black_box(&here)).addr());
}

fn scopes(levels: usize) {
    mark();
    if levels > 0 {
        scope(|scope| scope.spawn(|_| scopes(levels - 1)));
    }
}

fn scopes_in_place(levels: usize) {
    mark();
    if levels > 0 {
        in_place_scope(|scope| scope.spawn(|_| scopes_in_place(levels - 1)));
    }
}

fn broadcasts(levels: usize) {
    mark();
    if levels > 0 {
        broadcast(|_| broadcasts(levels - 1));
    }
}

fn yields(levels: usize) {
    mark();
    if levels > 0 {
        spawn(move || yields(levels - 1));
        yield_now();
    }
}

/// Goes there and back. Only the levels on the first pool's thread are marked.
fn installs(here: &ThreadPool, there: &ThreadPool, levels: usize) {
    mark();
    if levels > 0 {
        there.install(|| here.install(|| installs(here, there, levels - 1)));
    }
}

/// Returns the bytes that a level takes. All of them run on one thread.
fn bytes_per_level(recursion: impl FnOnce()) -> usize {
    PLACES.lock().unwrap().clear();
    recursion();
    let places = PLACES.lock().unwrap();
    assert_eq!(places.len(), LEVELS + 1);
    (places[0] - places[LEVELS]) / LEVELS
}

/// The limits are about a tenth above what was measured on x86-64, without link-time optimization. Stock rayon-core 1.13
/// takes, in the same order, 304, 240, 432, 128 and 432 bytes if it is optimized, and two thirds of these limits or
/// less if it is not.
#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "the limits are for another processor")]
fn a_level_of_recursion_takes_little_of_the_stack() {
    let limit =
        |optimized, unoptimized| if cfg!(debug_assertions) { unoptimized } else { optimized };
    with_pool(1, |pool| {
        with_pool(1, |other| {
            let check = |name: &str, recursion: &(dyn Fn() + Sync), limit: usize| {
                let bytes = bytes_per_level(|| pool.install(recursion));
                assert!(bytes <= limit, "{name}: {bytes} bytes per level, more than {limit}");
            };
            check("scope", &|| scopes(LEVELS), limit(350, 2_800));
            check("in_place_scope", &|| scopes_in_place(LEVELS), limit(350, 2_850));
            check("broadcast", &|| broadcasts(LEVELS), limit(430, 2_800));
            check("yield_now", &|| yields(LEVELS), limit(160, 1_950));
            check("install", &|| installs(pool, other, LEVELS), limit(430, 2_800));
        });
    });
}
