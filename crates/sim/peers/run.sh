#!/usr/bin/env bash
# Runs rayon on virtual cores, beside heist, on the same workloads:
#
#   crates/sim/peers/run.sh [WORKLOADS] [CORES] [MACHINE] [SEEDS] [SPAN] [PLACES] [JSON]
#   crates/sim/peers/run.sh join 64,128 generic 1 4000 10        with the ten most expensive source lines
#
# WORKLOADS are from spawn, join, scope, outside and loop. WORKLOADS, CORES and SEEDS are lists with commas, or `all`. MACHINE
# is `generic`, a name in crates/sim/machines, or a file. SPAN is the microseconds of work for each worker. JSON is a file for
# all that was measured.
#
# The published sources of rayon-core, crossbeam-deque, crossbeam-epoch and crossbeam-utils, in the versions of the
# repository's lock file, are copied to target/peers-sim. There, `std` and `core` in their paths become heist-sim-std, which
# has atomics, locks, threads, thread-locals and cells that are charged. rayon itself is used as it is. docs/SIMULATION.md says
# what that means.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${CARGO_TARGET_DIR:-$root/target}/peers-sim
unset CARGO_TARGET_DIR

fail() {
    printf 'peers: %s\n' "$1" >&2
    exit 1
}

# version NAME: that of the repository's lock file.
version() {
    local found
    found=$(awk -v name="name = \"$1\"" '$0 == name { getline; gsub(/"/, ""); print $3 }' "$root/Cargo.lock")
    [[ -n $found && $found != *$'\n'* ]] || fail "the lock file has not exactly one $1"
    printf '%s' "$found"
}

rewritten=(rayon-core crossbeam-deque crossbeam-epoch crossbeam-utils)

# The sources as published. They are fetched again when a version changes.
fetch() {
    local manifest
    manifest=$(
        printf '[package]\nname = "fetch"\nedition = "2021"\n\n[workspace]\n\n[dependencies]\n'
        for name in "${rewritten[@]}"; do printf '%s = "=%s"\n' "$name" "$(version "$name")"; done
    )
    [[ ! -d $work/fetch/vendor || $(cat "$work/fetch/Cargo.toml") != "$manifest" ]] || return 0
    rm -rf "$work/fetch"
    mkdir -p "$work/fetch/src"
    touch "$work/fetch/src/lib.rs"
    printf '%s\n' "$manifest" >"$work/fetch/Cargo.toml"
    (cd "$work/fetch" && cargo vendor -q --respect-source-config vendor >/dev/null)
}

# expect NUMBER PATTERN FILES...: the pattern must occur in this many lines. If it does not, the published sources have changed,
# and the changes below have to be looked at again.
expect() {
    local number=$1 pattern=$2
    shift 2
    local found
    found=$(cat "$@" | grep -cE -- "$pattern" || true)
    [[ $found == "$number" ]] || fail "$pattern occurs in $found lines, not $number, of $*"
}

# redirect FILES...: all paths that begin with std or core, and thread_local.
redirect() {
    perl -pi -e 's/(?<![\w:])(?:::)?(?:std|core)::/::heist_sim_std::/g; s/(?<![\w:])thread_local!/::heist_sim_std::thread_local!/g;
        s/(?<![\w:])alloc::sync::/::heist_sim_std::sync::/g' "$@"
}

rewrite() {
    rm -rf "${work:?}/crates"
    mkdir -p "$work/crates"
    local name src
    for name in "${rewritten[@]}"; do
        cp -R "$work/fetch/vendor/$name" "$work/crates/$name"
        printf '\n[dependencies.heist-sim-std]\npath = "%s/crates/sim/std"\n' "$root" >>"$work/crates/$name/Cargo.toml"
    done

    # The part of crossbeam-utils that the others use: Backoff, AtomicConsume, and CachePadded, in which nothing is replaced.
    src=$work/crates/crossbeam-utils/src
    expect 1 'use core::hint::spin_loop;' "$src/lib.rs"
    perl -pi -e 's/use core::hint::spin_loop;/use ::heist_sim_std::hint::spin_loop;/' "$src/lib.rs"
    redirect "$src/backoff.rs" "$src/atomic/consume.rs"

    src=$work/crates/crossbeam-epoch/src
    # Its cell has the interface of loom's, and so has ours.
    expect 1 'struct UnsafeCell<T>\(::core::cell::UnsafeCell<T>\);' "$src/lib.rs"
    perl -0pi -e 's/(cfg\(not\(crossbeam_loom\)\)\].*?pub\(crate\) mod cell \{).*?\n    \}\n/$1\n        pub(crate) use ::heist_sim::cell::UnsafeCell;\n    }\n/s' "$src/lib.rs"
    expect 0 'struct UnsafeCell<T>' "$src/lib.rs"
    printf '\n[dependencies.heist-sim]\npath = "%s/crates/sim"\n' "$root" >>"$work/crates/crossbeam-epoch/Cargo.toml"
    redirect "$src"/*.rs "$src"/sync/*.rs
    # A value that does not change any more is read, not written.
    expect 1 '&\*self\.value\.get\(\)' "$src/sync/once_lock.rs"
    perl -pi -e 's/&\*self\.value\.get\(\)/&*self.value.load()/' "$src/sync/once_lock.rs"

    src=$work/crates/crossbeam-deque/src
    redirect "$src"/*.rs
    # What is read is not written.
    expect 6 'slot\.task\.get\(\)\.read\(\)' "$src/deque.rs"
    perl -pi -e 's/slot\.task\.get\(\)\.read\(\)/slot.task.load().read()/' "$src/deque.rs"

    src=$work/crates/rayon-core/src
    redirect $(find "$src" -name '*.rs')
    # Threads that borrow, in a function that the workloads do not call.
    expect 1 '^ *let mut builder = ::heist_sim_std::thread::Builder::new' "$src/lib.rs"
    perl -pi -e 's/^( *let mut builder = )::heist_sim_std::thread::Builder::new/$1::std::thread::Builder::new/' "$src/lib.rs"

    # Nothing has been forgotten, apart from the tests and from what is left alone in crossbeam-utils.
    local left
    left=$(grep -rnE '(^|[^a-z_:])(std|core)::(sync|thread|cell|hint|time)\b|(std|core)::ptr::(read|write)_volatile' \
        "$work/crates/rayon-core/src" "$work/crates/crossbeam-deque/src" "$work/crates/crossbeam-epoch/src" \
        --include='*.rs' | grep -vE '/tests?\.rs:|^[^:]+:[0-9]+: *//|::std::thread::Builder' || true)
    [[ -z $left ]] || fail $'these were not redirected:\n'"$left"
}

fetch
rewrite

cat >"$work/Cargo.toml" <<TOML
[package]
name = "peers"
edition = "2024"

[[bin]]
name = "peers"
path = "$here/src/main.rs"

[dependencies]
heist-sim = { path = "$root/crates/sim" }
heist-sim-workloads = { path = "$root/crates/sim/workloads" }
rayon = "=$(version rayon)"
rayon-core = "=$(version rayon-core)"
serde_json = "1"

[patch.crates-io]
$(for name in "${rewritten[@]}"; do printf '%s = { path = "crates/%s" }\n' "$name" "$name"; done)

[profile.release]
debug = "line-tables-only"

[workspace]
TOML
# The versions of the other dependencies are those of the repository.
cp "$root/Cargo.lock" "$work/Cargo.lock"
(cd "$work" && RUSTFLAGS="${RUSTFLAGS:-} --cap-lints warn -A warnings" cargo build --quiet --release)
printf 'rayon-core %s, rayon %s, crossbeam-deque %s, crossbeam-epoch %s, crossbeam-utils %s\n' "$(version rayon-core)" \
    "$(version rayon)" "$(version crossbeam-deque)" "$(version crossbeam-epoch)" "$(version crossbeam-utils)"
exec "$work/target/release/peers" "$@"
