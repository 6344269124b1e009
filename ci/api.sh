#!/usr/bin/env bash
# Compares the public API of heist-deque and heist with the listings in docs/api/, so that no change of it goes unnoticed.
#
#   ci/api.sh             fails with a diff if the API has changed
#   ci/api.sh --accept    writes the listings anew
#   ci/api.sh --install   installs the tool first, in target/tools; takes about two minutes on two cores
#
# Needs a nightly toolchain, because rustdoc's JSON is unstable, and cargo-public-api, which is installed only on request.
# Exit code 77: skipped, and a line that says why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The version that reads the JSON of the nightly with which the listings were made. Other versions may print the same
# items in other words.
tool=cargo-public-api@0.52.0

say() { printf 'api: %s\n' "$1"; }
skip() { say "skipped: $1"; exit 77; }
fail() { say "FAILED: $1" >&2; exit 1; }

accept=
case ${1:-} in
"") ;;
--accept) accept=1 ;;
--install)
    begun=$SECONDS
    cargo install --quiet --locked --root target/tools --target-dir target/tools/build "$tool"
    rm -rf target/tools/build
    say "installed $tool in target/tools in $((SECONDS - begun))s"
    ;;
*) echo "usage: ci/api.sh [--accept | --install]" >&2; exit 2 ;;
esac

cargo +nightly --version >/dev/null 2>&1 || skip "needs a nightly toolchain (rustup toolchain install nightly)"
program=target/tools/bin/cargo-public-api
[[ -x $program ]] || program=$(command -v cargo-public-api) || skip "needs $tool (ci/api.sh --install)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# compare PACKAGE ARGUMENTS...: compares the API of a package, built with these arguments, with its listing. The listing has
# no implementations for all types, and none of auto traits: tests/auto_traits.rs of each crate checks the latter.
changed=
compare() {
    local package=$1 recorded=docs/api/$1.txt now=$work/$1.txt
    shift
    RUSTDOCFLAGS="--cap-lints allow" cargo +nightly rustdoc --quiet --lib -p "$package" --target-dir target/api "$@" -- \
        -Zunstable-options --output-format json
    "$program" public-api --rustdoc-json "target/api/doc/${package//-/_}.json" --omit blanket-impls,auto-trait-impls >"$now" ||
        skip "$tool cannot read what $(rustc +nightly --version) writes"
    [[ -s $now ]] || fail "the listing of $package is empty"
    if [[ -n $accept ]]; then
        mkdir -p docs/api
        cp "$now" "$recorded"
        say "wrote $recorded, $(wc -l <"$recorded") items"
    elif diff -u --label "$recorded" --label "the public API now" "$recorded" "$now"; then
        say "ok: $package, $(wc -l <"$recorded") items"
    else
        changed+=" $package"
    fi
}

compare heist-deque
compare heist --features tracing,prometheus,futures,indicatif
[[ -z $changed ]] ||
    fail "the public API of$changed has changed: if that is intended, run ci/api.sh --accept, and write it in CHANGELOG.md"
