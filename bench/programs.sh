#!/usr/bin/env bash
# Builds real programs that use rayon twice, with stock rayon-core and with ours, and compares wall time, processor time and
# peak memory of the two in interleaved pairs. bench/programs/README.md explains it.
#
#   bench/programs.sh                          all programs
#   bench/programs.sh --pairs 31 b3sum tokei   two of them
#   bench/programs.sh --check                  builds only the program that builds fastest, and compares its outputs
#   bench/programs.sh --help
set -euo pipefail
cd "$(dirname "$0")/.."

# The version of rayon-core whose place ours takes. Some published lock files have an older one.
stock=1.13.0

repository=$PWD
target=${CARGO_TARGET_DIR:-$PWD/target}
cargo build -q --release -p heist-bench-programs
measure=$(cd "$target" && pwd)/release/heist-bench-programs
for argument in "$@"; do
    if [[ $argument == -h || $argument == --help ]]; then exec "$measure" run --help; fi
done
# The packages to build: NAME=VERSION, or `small` for bench/programs/small.
packages=$("$measure" needs "$@")

# shellcheck source=ci/rayon-common.sh
source ci/rayon-common.sh
bin=$work/bin
mkdir -p "$bin/stock" "$bin/heist"

# The same placement of loops and functions in both builds: see bench/rayon/run.sh.
export RUSTFLAGS="${RUSTFLAGS:-} -C llvm-args=-align-loops=64 -C llvm-args=-align-all-functions=6"

# others FILE: the packages of a lock file, without those that belong to one of the two rayon-cores.
others() {
    awk 'BEGIN { RS = "" } /^\[\[package\]\]/ { print $4, $7 }' "$1" | tr -d '"' |
        grep -vE '^(rayon-core|crossbeam-(deque|epoch|utils)|heist|heist-deque|libc) ' | sort
}

# build ARGUMENTS...: builds the package in the current directory. Warnings of code that is not ours are not shown.
build() {
    cargo "$@" build -q --release --locked 2>"$work/build.log" || { cat "$work/build.log" >&2 && exit 1; }
}

# both PROGRAM...: builds the package in the current directory with stock rayon-core and with ours. The two builds share a
# target directory: packages that do not depend on rayon-core are the same files in both.
both() {
    local program
    if [[ -f Cargo.lock.stock ]]; then
        cp Cargo.lock.stock Cargo.lock
    else
        cargo update -q -p rayon-core --precise "$stock"
        cp Cargo.lock Cargo.lock.stock
    fi
    build
    for program in "$@"; do cp "$CARGO_TARGET_DIR/release/$program" "$bin/stock/"; done
    settle >/dev/null
    diff <(others Cargo.lock.stock) <(others Cargo.lock) >&2 || fail "$*: the builds differ in more than rayon-core"
    build "${ours[@]}"
    for program in "$@"; do cp "$CARGO_TARGET_DIR/release/$program" "$bin/heist/"; done
}

for package in $packages; do
    begun=$SECONDS
    if [[ $package == small ]]; then
        name=small
        programs=("$repository"/bench/programs/small/src/bin/*.rs)
        programs=("${programs[@]##*/}")
        programs=("${programs[@]%.rs}")
        rm -rf "${work:?}/small"
        cp -Rp "$repository/bench/programs/small" "$work/small"
    else
        name=${package%=*}
        programs=("${name#du-}")
        # Unpacked again, its sources would be newer than the programs.
        if [[ ! -f $work/$name/unpacked-$package ]]; then
            fetch "$package"
            unpack "$package"
            touch "$work/$name/unpacked-$package"
        fi
    fi
    (cd "$work/$name" && both "${programs[@]}")
    printf '%s: %s: %ss for both builds\n' "$me" "$package" "$((SECONDS - begun))" >&2
done

exec "$measure" run --work "$work" "$@"
