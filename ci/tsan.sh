#!/usr/bin/env bash
# Runs the program `stress` (crates/stress) under ThreadSanitizer.
#
# The standard library that comes with a toolchain is not instrumented, and
# without its happens-before edges every Arc and every join looks like a race.
# So we take Debian's compiler packages, unpack them beside the system (nothing
# is installed), rebuild std with -Zsanitizer=thread and keep the result as a
# sysroot of its own. After the first run only our own code is compiled.
#
# ThreadSanitizer does not understand fences: it would report data that only a
# fence orders. We have none of these: the queues use no fences, and those of the
# pool (which workers sleep and which are woken) decide about wake-ups, while tasks
# and results pass by acquire and release. So a report is a finding, and nothing is
# suppressed. It forgets what a thread did once that thread has ended and was
# detached (its JoinHandle dropped, a scoped one included): the cases of `stress`
# keep the handles of their threads and join them.
#
# Exit code: 0 clean, 66 a race was reported, 77 skipped (the packages cannot be
# had here; one line says why), anything else: something is broken.
# Remove the cache directory to start afresh, e.g. after a new Debian compiler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

subjects=(queues pools forks loops pipelines engines)
args=(--quick --seed 1)
time_limit=1800 # seconds for each subject, so that a hang ends too
min_rustc=1.85 # edition 2024; a higher rust-version in the workspace wins
cache=${HEIST_TSAN_DIR:-target/tsan}

target=x86_64-unknown-linux-gnu
race_exit=66
# Debian's run-time library looks for a symbolizer that we did not unpack; name
# another, so that reports show files and lines.
symbolizer=$(command -v llvm-symbolizer || command -v addr2line || true)
# Threads of the global pool that have ended are not joined before the process exits, because that pool is never stopped.
export TSAN_OPTIONS="halt_on_error=1 report_thread_leaks=0 exitcode=$race_exit external_symbolizer_path=$symbolizer"
# Whatever the workspace's release profile says: lines in the reports, and
# nothing that the rebuilt std does not support.
export CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none \
  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_PANIC=unwind

say() { echo "tsan: $*"; }
skip() { say "skipped: $*"; exit 77; }
fail() { say "FAILED: $*" >&2; exit 1; }

mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
root=$cache/root       # the unpacked packages
sysroot=$cache/sysroot # the rebuilt std
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=ci/debian-rust.sh
source ci/debian-rust.sh
needs_debian

# Runs a command with the unpacked compiler in place of the usual one.
with_rustc() { env RUSTC="$root/rustc" RUSTC_BOOTSTRAP=1 "$@"; }

build_std() {
  say "rebuilding std for ThreadSanitizer"
  local crate=$cache/std
  rm -rf "$crate" "$sysroot"
  mkdir -p "$crate/src"
  printf '%s\n' '[package]' 'name = "empty"' 'edition = "2021"' '[workspace]' >"$crate/Cargo.toml"
  echo '#![no_std]' >"$crate/src/lib.rs"
  local vendor=$root/usr/lib/rustlib/src/rust/library/vendor
  (cd "$crate" && CARGO_ENCODED_RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR=out \
    with_rustc cargo build --quiet --release -j 2 --offline --target "$target" \
    -Zbuild-std=std \
    --config 'source.crates-io.replace-with="std-vendor"' \
    --config "source.std-vendor.directory='$vendor'") || fail "std does not build"
  local lib=$sysroot.new/lib/rustlib/$target/lib
  rm -rf "$sysroot.new"
  mkdir -p "$lib"
  cp "$crate/out/$target/release/deps/"*.rlib "$lib"
  rm -f "$lib"/libempty-*
  # rustc looks for the run-time library under a name of its own.
  local rt=("$root"/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.tsan-x86_64.a)
  cp "${rt[0]}" "$lib/librustc-stable_rt.tsan.a"
  mv "$sysroot.new" "$sysroot"
  rm -rf "$crate"
}

[[ -x $root/rustc ]] || rm -rf "$sysroot"
# The sanitizer's run-time library must be that of the compiler's LLVM.
debian_rust "$root" "" rust-web-src libclang-rt-LLVM-dev
version=$("$root/rustc" --version)
need=$(cargo metadata --no-deps --format-version 1 --quiet | grep -oE '"rust_version":"[0-9.]+"' | cut -d'"' -f4 || true)
need=$(printf '%s\n' "$min_rustc" "$need" | sort -V | tail -n 1)
have=$(cut -d' ' -f2 <<<"$version")
[[ $(printf '%s\n' "$need" "$have" | sort -V | head -n 1) == "$need" ]] ||
  skip "Debian's compiler is $have, older than $need"
[[ -d $sysroot ]] || build_std
say "with $version"

# First the checker itself: a race that must be reported, and the same program
# with a lock, which must not be.
cat >"$work/control.rs" <<'RUST'
use std::sync::{Arc, Mutex};
static mut PLAIN: u64 = 0;
fn main() {
    let racy = std::env::args().nth(1).as_deref() == Some("racy");
    let lock = Arc::new(Mutex::new(()));
    let threads = [1, 2].map(|n| {
        let lock = Arc::clone(&lock);
        std::thread::spawn(move || {
            for _ in 0..1000 {
                let _guard = (!racy).then(|| lock.lock().unwrap());
                unsafe { (&raw mut PLAIN).write_volatile(n) };
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}
RUST
with_rustc "$root/rustc" --edition 2021 -O -Cdebuginfo=1 -Zsanitizer=thread --target "$target" \
  --sysroot "$sysroot" -o "$work/control" "$work/control.rs" || fail "the control program does not build"
code=0
"$work/control" racy >"$work/log" 2>&1 || code=$?
if [[ $code != "$race_exit" ]] || ! grep -q 'ThreadSanitizer: data race' "$work/log"; then
  cat "$work/log" >&2
  fail "a plain data race was not reported (exit code $code)"
fi
"$work/control" locked >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "a race was reported where there is none"; }
say "control: race reported, locked twin clean"

flags=$(printf '%s\x1f' -Zsanitizer=thread)--sysroot=$sysroot
say "building stress"
CARGO_ENCODED_RUSTFLAGS=$flags CARGO_TARGET_DIR=$cache/build \
  with_rustc cargo build --quiet --release -j 2 --target "$target" -p heist-stress --bin stress ||
  fail "stress does not build"
for subject in "${subjects[@]}"; do
  code=0
  timeout "$time_limit" "$cache/build/$target/release/stress" "$subject" "${args[@]}" || code=$?
  case $code in
    0) say "ok: stress $subject ${args[*]}, no race reported" ;;
    "$race_exit") say "FAILED: data race in stress $subject ${args[*]}, see the report above" >&2; exit "$race_exit" ;;
    124) fail "stress $subject ${args[*]} still ran after $time_limit s" ;;
    *) fail "stress $subject ${args[*]} ended with exit code $code" ;;
  esac
done
