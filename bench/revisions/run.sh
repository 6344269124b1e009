#!/usr/bin/env bash
# Compares two revisions of heist on the same programs, in the same processes:
#
#   bench/revisions/run.sh v0.1.0                                   that revision and HEAD
#   bench/revisions/run.sh v0.1.0 HEAD --processes 41 --json FILE   with all samples in a file
#   bench/revisions/run.sh v0.1.0 HEAD --case fib --case sort       some of the cases
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
usage() {
    echo "usage: bench/revisions/run.sh BEFORE [AFTER] [--processes N] [--rounds N] [--case NAME] [--json FILE]" >&2
    exit 2
}

# Makes these the only members of a workspace.
only() {
    members=$1 perl -0pi -e 's/^members = \[.*?\]/members = ["$ENV{members}"]/ms; s/^(default-members|exclude) = \[.*?\]\n//msg' "$2"
}

[[ ${1:--} != -* ]] || usage
revisions=("$1") && shift
if [[ ${1:--} != -* ]]; then revisions+=("$1") && shift; else revisions+=(HEAD); fi

work=${CARGO_TARGET_DIR:-$root/target}/revisions
unset CARGO_TARGET_DIR
rm -rf "$work/before" "$work/after" "$work/tools"
commits=()
for side in before after; do
    revision=${revisions[${#commits[@]}]}
    commit=$(git -C "$root" rev-parse --short=12 --verify --quiet "$revision^{commit}") ||
        { echo "run.sh: git knows no revision '$revision'" >&2; exit 2; }
    commits+=("$commit")
    mkdir -p "$work/$side"
    git -C "$root" archive "$commit" crates/deque crates/heist Cargo.toml | tar x -C "$work/$side"
    # One lock file cannot have two packages of the same name and version, so the versions are changed. The other members
    # of the workspace are not here.
    sed -i "s/^version = .*/version = \"0.0.0-$side\"/" "$work/$side/Cargo.toml"
    only "crates/*" "$work/$side/Cargo.toml"
    sed -i "s/^\(heist-deque = { version = \)\"[^\"]*\"/\1\"0.0.0-$side\"/" \
        "$work/$side/Cargo.toml" "$work/$side/crates/heist/Cargo.toml"
done
# A copy of the harness: cargo would take the repository's manifest for that of everything below its directory, and so
# for that of both revisions.
mkdir -p "$work/tools/bench"
cp -Rp "$root/bench/harness" "$work/tools/bench/"
cp -p "$root/Cargo.toml" "$work/tools/"
only bench/harness "$work/tools/Cargo.toml"

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
harness = { package = "heist-bench-harness", path = "tools/bench/harness" }
clap = { version = "4.6", features = ["derive"] }
serde_json = "1"

[profile.release]
lto = "fat"
codegen-units = 1

[workspace]
exclude = ["before", "after", "tools"]
TOML
# The versions of the other dependencies are those of the repository.
cp "$root/Cargo.lock" "$work/Cargo.lock"

# Where the compiler happens to put a short function can cost a fifth of its speed. Therefore all functions and loops
# start at a cache line, in both revisions.
export RUSTFLAGS="${RUSTFLAGS:-} -C llvm-args=-align-loops=64 -C llvm-args=-align-all-functions=6"
(cd "$work" && cargo build --quiet --release)
exec "$work/target/release/revisions" compare --before "${commits[0]}" --after "${commits[1]}" "$@"
