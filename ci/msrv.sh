#!/usr/bin/env bash
# Builds and tests the library crates (heist-deque, heist and rayon-core) with the oldest supported Rust: the compiler is
# Debian's, unpacked under target/msrv. Nothing is installed.
#
# The dependencies are older ones as well: ci/oldest-workspace.sh.
#
# Exit code 77: skipped, and a line that says why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

oldest=1.85 # what `rust-version` of the library crates must say

say() { echo "msrv: $*"; }
skip() { say "skipped: $*"; exit 77; }
fail() { say "FAILED: $*" >&2; exit 1; }

cache=$PWD/target/msrv
mkdir -p "$cache"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=ci/debian-rust.sh
source ci/debian-rust.sh
# shellcheck source=ci/oldest-workspace.sh
source ci/oldest-workspace.sh
needs_debian
debian_rust "$cache/root" "$oldest."
export RUSTC=$cache/root/rustc RUSTDOC=$cache/root/rustdoc
say "with $("$RUSTC" --version)"

space=$cache/workspace
oldest_workspace "$space"
cd "$space"

export CARGO_TARGET_DIR=$cache/target CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0

core=(--locked --manifest-path crates/rayon-core/Cargo.toml)
for metadata in "" "${core[*]}"; do
  # shellcheck disable=SC2086 # several arguments, or none
  cargo metadata --quiet --no-deps --format-version 1 $metadata
done | grep -oE '"rust_version":("[^"]*"|null)' | sort -u >"$work/declared"
[[ $(cat "$work/declared") == "\"rust_version\":\"$oldest\"" ]] ||
  fail "this script tests Rust $oldest, the manifests say: $(paste -sd' ' "$work/declared")"

# What is behind features compiles; its tests are few, and run with the current Rust only.
cargo check -p heist-deque --no-default-features
cargo check -p heist --features tracing,prometheus,futures,indicatif

# Compile-fail tests are left out: another version of the compiler rejects the same programs in other words.
skip=(--skip misuse_does_not_compile)
# The other tests, and those in the documentation, run with the current Rust only: these use every part of the libraries.
cargo test -p heist-deque --test deque --test memory -- "${skip[@]}"
cargo test -p heist --lib --test fork --test engine -- "${skip[@]}"
# These take this compiler minutes to generate code for.
cargo check -p heist --test pool --test parallel
cargo run -p heist --example skew
cargo test --tests "${core[@]}"
say "ok: heist-deque, heist and rayon-core on Rust $oldest"
