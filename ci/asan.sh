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

# Reports need line numbers.
export CARGO_PROFILE_MODEL_DEBUG=line-tables-only
export RUSTFLAGS="$flags ${RUSTFLAGS:-}"
run() { cargo +nightly "$1" --target "$target" --target-dir target/asan --profile model "${@:2}"; }

# Without `auto_traits`, which is compiled only, and without the doc tests, which are run natively.
run test -p heist-deque --lib --test deque --test memory --test race
run run -p heist-stress -- queues --quick

# To find what is used after a return, the sanitizer puts locals elsewhere than on the stack. The pool, which measures
# its stack by the addresses of locals, then takes it to be full, and leaves it to another thread to run what a task
# waits for: not what the tests of waiting count on. So only those in which tasks borrow from stacks run with false
# ones, and then everything runs with true ones. The tests called `forget` leak handles, and that is their point.
run test -p heist --test pool -- drops:: install::
export ASAN_OPTIONS="detect_stack_use_after_return=0 ${ASAN_OPTIONS:-}"
# Without the stack overflow, which the sanitizer reports in its own way. Of the pipelines only the tests that drop
# values at unusual moments: the example below has every shape.
run test -p heist --test pool --test fork --test demand --test parallel --test engine --test process --test allocations -- \
    --skip ::forget --skip stack_overflow::
run test -p heist --test pipeline -- --skip ::forget drop_panics:: results::
run run -p heist-stress -- pools pipelines --quick
