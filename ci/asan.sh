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

# Reports need line numbers. No optimization leaves all accesses to the sanitizer; and with some, to compile the tests of pools took
# a quarter of an hour and 20 GiB.
export CARGO_PROFILE_MODEL_DEBUG=line-tables-only CARGO_PROFILE_MODEL_OPT_LEVEL=0
export RUSTFLAGS="$flags ${RUSTFLAGS:-}"
run() { cargo +nightly "$1" --target "$target" --target-dir target/asan --profile model "${@:2}"; }

# This leaves out `auto_traits`, which only compiles, and the doc tests, which run natively.
run test -p heist-deque --lib --test deque --test memory --test race
run run -p heist-stress -- queues --quick --seed 1

# To detect the use of a local after a return, the sanitizer moves locals to a fake stack. The pool measures the use of its
# stack by the addresses of locals, so it then considers the stack full, and another thread runs the task that a task waits
# for. The tests of waiting do not expect that. So only the tests in which tasks borrow from stacks run with fake stacks.
# After that, everything runs with real stacks. The tests called `forget` leak handles on purpose, and are skipped.
# With the feature that the stress program and the last tests need, so that heist is compiled once.
heist=(-p heist --features futures)
run test "${heist[@]}" --test pool -- drops:: install::
export ASAN_OPTIONS="detect_stack_use_after_return=0 ${ASAN_OPTIONS:-}"
# This leaves out the stack overflow, which the sanitizer reports in its own way, and the tests of pipelines, which take as
# long to compile as all others together: the stress program has every kind of pipeline, with panics and early ends.
run test "${heist[@]}" --test pool --test fork --test parallel --test engine --test process -- \
    --skip ::forget --skip stack_overflow::
run test "${heist[@]}" --test futures
run run -p heist-stress -- pools forks loops pipelines engines --quick --seed 1
