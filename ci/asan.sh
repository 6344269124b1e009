#!/usr/bin/env bash
# Runs the tests under AddressSanitizer and LeakSanitizer: use after free, double free, leaks.
#
# Exit code 77: skipped, and a line that says why.
set -euo pipefail
cd "$(dirname "$0")/.."

target=x86_64-unknown-linux-gnu
if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "asan: skipped: needs a nightly toolchain (rustup toolchain install nightly)"
    exit 77
fi
[[ $(uname -sm) == "Linux x86_64" ]] || { echo "asan: skipped: needs Linux on x86_64"; exit 77; }

# A sanitizer that reports nothing must be shown to work: this program frees twice.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/control.rs" <<'RUST'
fn main() {
    let item = Box::into_raw(Box::new(1_u64));
    drop(unsafe { Box::from_raw(item) });
    drop(unsafe { Box::from_raw(std::hint::black_box(item)) });
}
RUST
flags="-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer"
# shellcheck disable=SC2086 # two flags
rustc +nightly $flags --target "$target" -o "$work/control" "$work/control.rs"
if "$work/control" >/dev/null 2>&1; then
    echo "asan: FAILED: a double free goes unnoticed, so the tests would show nothing" >&2
    exit 1
fi

# The compile-fail tests have no run time to check; doc tests are run natively.
export RUSTFLAGS="$flags ${RUSTFLAGS:-}"
tests=$(cd crates/deque/tests && ls ./*.rs | sed -E 's/.*\/(.*)\.rs/\1/' | grep -vxE 'auto_traits|shuttle')
args=()
for test in $tests; do args+=(--test "$test"); done
cargo +nightly test --target "$target" --target-dir target/asan --profile model -p heist-deque --lib "${args[@]}"
cargo +nightly run --target "$target" --target-dir target/asan --profile model -p heist-deque --example stress -- --quick
