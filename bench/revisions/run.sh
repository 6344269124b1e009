#!/usr/bin/env bash
# What `fib` costs on two revisions of heist, measured in turn in the same processes:
#
#   bench/revisions/run.sh v0.1.0                                   that one, and HEAD
#   bench/revisions/run.sh v0.1.0 HEAD --processes 41 --json FILE   all samples, too
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
command="bench/revisions/run.sh $*"
usage() { echo "usage: bench/revisions/run.sh BEFORE [AFTER] [--processes N] [--rounds N] [--json FILE]" >&2; exit 2; }

revisions=() processes=15 rounds=7 file=()
while (($#)); do
    case $1 in
    --processes) processes=${2:?how many} && shift 2 ;;
    --rounds) rounds=${2:?how many} && shift 2 ;;
    --json) file=("$(realpath -m -- "${2:?which file}")") && shift 2 ;;
    -*) usage ;;
    *) revisions+=("$1") && shift ;;
    esac
done
((${#revisions[@]} == 1)) && revisions+=(HEAD)
((${#revisions[@]} == 2)) || usage
cd "$root"

work=${CARGO_TARGET_DIR:-$root/target}/revisions
unset CARGO_TARGET_DIR
rm -rf "$work/before" "$work/after"
commits=()
for side in before after; do
    revision=${revisions[${#commits[@]}]}
    commits+=("$(git rev-parse --short=12 --verify --quiet "$revision^{commit}")") || { echo "run.sh: git knows no revision '$revision'" >&2; exit 2; }
    mkdir -p "$work/$side"
    git archive "$revision" crates/deque crates/heist Cargo.toml | tar x -C "$work/$side"
    # Two crates of one name and version cannot stand in one lock file; nor are the others of the workspace here.
    sed -i "s/^version = .*/version = \"0.0.0-$side\"/; s/^members = .*/members = [\"crates\/*\"]/; /^default-members/d; /^exclude/d" "$work/$side/Cargo.toml"
    sed -i "s/^\(heist-deque = { version = \)\"[^\"]*\"/\1\"0.0.0-$side\"/" "$work/$side/crates/heist/Cargo.toml"
done
cat >"$work/Cargo.toml" <<TOML
[package]
name = "revisions"
edition = "2024"

[[bin]]
name = "revisions"
path = "$here/main.rs"

[dependencies]
before = { package = "heist", path = "before/crates/heist" }
after = { package = "heist", path = "after/crates/heist" }

[profile.release]
lto = "fat"
codegen-units = 1

[workspace]
exclude = ["before", "after"]
TOML

# Where the compiler happens to put a short function can cost it a fifth of its speed. So all of them begin with a cache line, in both.
export RUSTFLAGS="${RUSTFLAGS:-} -C llvm-args=-align-loops=64 -C llvm-args=-align-all-functions=6"
(cd "$work" && cargo build --quiet --release)
exec "$work/target/release/revisions" all "$processes" "$rounds" "${commits[@]}" "$command" "${file[@]}"
