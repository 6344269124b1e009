#!/usr/bin/env bash
# Checks the floors of the simulator against heist as it was in another revision: its crates/heist and crates/deque with the
# present crates/sim, and thus on the same model, with the same workloads and the same limits. A floor is worth its line if
# the code from before the change that it protects fails it.
#
#   ci/floors.sh REVISION            all rows
#   ci/floors.sh REVISION join       those of a workload
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $# -ge 1 ]] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
revision=$1
shift
commit=$(git rev-parse --short=12 --verify --quiet "$revision^{commit}") ||
    { printf 'floors: git knows no revision %s\n' "$revision" >&2; exit 2; }
git cat-file -e "$commit:crates/heist/src/sync/sim.rs" 2>/dev/null ||
    { printf 'floors: heist of %s cannot be simulated yet\n' "$commit" >&2; exit 2; }

# What is built stays in target, as everything that is built does. The sources do not.
work=${CARGO_TARGET_DIR:-$PWD/target}/floors
trap 'rm -rf "${work:?}/tree"' EXIT
rm -rf "${work:?}/tree"
mkdir -p "$work/tree"
# With the present time, or cargo would take what it built of a later revision for newer.
git archive "$commit" | tar -x -m -C "$work/tree"
rm -rf "$work/tree/crates/sim"
cp -R crates/sim "$work/tree/crates/sim"

printf 'floors: heist of %s, limits of the present\n' "$commit"
cd "$work/tree"
# Warnings of older code are of no interest.
RUSTFLAGS="${RUSTFLAGS:-} -A warnings" CARGO_TARGET_DIR=$work/build \
    cargo test --quiet --release -p heist-sim-workloads --test floors -- "$@"
