#!/usr/bin/env bash
# Runs the tests of published crates that use rayon on our rayon-core: blake3 (which calls rayon-core directly), hashbrown
# and indexmap (through rayon). Not part of ci/check.sh, because it builds much that is not ours.
#
# The numbers are minimums, as in ci/rayon-suite.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=ci/rayon-common.sh
source ci/rayon-common.sh

fetch blake3=1.8.7 hashbrown=0.17.1 indexmap=2.14.2

# Not run for any of the three: doc tests, because they start no pool, and tests that need other features than those named
# below.

# The tests of blake3 compare it with a reference implementation that is not published. An older blake3, in portable Rust
# and on one thread, takes its place. Also not run: test_reference_impl_size, which tests the reference itself.
unpack blake3=1.8.7
mkdir -p "$work/reference_impl/src"
cat >"$work/reference_impl/Cargo.toml" <<'TOML'
[package]
name = "reference_impl"
edition = "2021"

[dependencies.blake3]
version = "=1.5.5"
features = ["pure"]
TOML
cat >"$work/reference_impl/src/lib.rs" <<'RUST'
pub struct Hasher(blake3::Hasher);

impl Hasher {
    pub fn new() -> Hasher {
        Hasher(blake3::Hasher::new())
    }
    pub fn new_keyed(key: &[u8; 32]) -> Hasher {
        Hasher(blake3::Hasher::new_keyed(key))
    }
    pub fn new_derive_key(context: &str) -> Hasher {
        Hasher(blake3::Hasher::new_derive_key(context))
    }
    pub fn update(&mut self, input: &[u8]) {
        self.0.update(input);
    }
    pub fn finalize(&self, output: &mut [u8]) {
        self.0.finalize_xof().fill(output);
    }
}
RUST
cd "$work/blake3"
printf '\n[dev-dependencies.reference_impl]\npath = "../reference_impl"\n' >>Cargo.toml
settle --features rayon,mmap
tests blake3 51 1 --features rayon,mmap --lib -- --skip test_reference_impl_size

unpack hashbrown=0.17.1
cd "$work/hashbrown"
settle --features rayon
tests hashbrown 168 2 --features rayon --lib --tests

unpack indexmap=2.14.2
cd "$work/indexmap"
settle --features rayon
tests indexmap 194 1 --features rayon --lib --tests

printf '%s: %s tests passed on %s\n' "$me" "$total" "$core"
