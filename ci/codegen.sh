#!/usr/bin/env bash
# Counts the instructions of a join that no other worker wants, and of a task of normal priority that the only worker spawns and
# joins, in the profiles with which people build their programs. What is
# not inlined in one of them costs much more there: without any link-time optimization, an access to a thread-local once took
# ten times as long. A count does not depend on what else the machine does; callgrind takes it.
#
#   ci/codegen.sh            all profiles
#   ci/codegen.sh lto-off    some of them
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $(uname -m) != x86_64 ]]; then
    echo 'codegen: skipped: the limits are those of x86-64'
    exit 77
fi
if ! command -v valgrind >/dev/null; then
    echo 'codegen: skipped: there is no valgrind'
    exit 77
fi

# The limits for a task are 2 % above what was counted; that of `debuginfo` is that of `release`.
# A name, the largest count of instructions for a call of the program's function, which is a join or a leaf, that for a task, and the
# settings of cargo's release profile.
profiles=(
    'release        32  613  '
    'lto-off        38  798  LTO=off'
    'lto-thin       32  574  LTO=thin'
    'lto-fat        32  459  LTO=fat CODEGEN_UNITS=1'
    'opt-level-2    32  602  OPT_LEVEL=2'
    'incremental    32  651  INCREMENTAL=true'
    'debuginfo      32  613  DEBUG=full'
    'panic-abort    32  596  PANIC=abort'
)

# The program, as one of a user: a package of its own outside of this workspace, whose profile it does not have.
work=${CARGO_TARGET_DIR:-$PWD/target}/codegen
mkdir -p "$work/src"
cp ci/codegen.rs "$work/src/main.rs"
cp Cargo.lock "$work/Cargo.lock"
cat >"$work/Cargo.toml" <<MANIFEST
[package]
name = "codegen"
version = "0.1.0"
edition = "2024"

[workspace]

[dependencies]
heist = { path = "$PWD/crates/heist" }
MANIFEST

# What the caller has set for other builds is no part of these profiles.
unset CARGO_INCREMENTAL RUSTFLAGS "${!CARGO_PROFILE_@}"

# Prints how many instructions one of so many is: of the program's joins or tasks, with that argument.
instructions() {
    local what=$1 argument=$2 count=$3 said counted
    if ! said=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*counted_${what}s*" \
        "$work/target/release/codegen" "$what" "$argument" 2>&1); then
        printf 'codegen: FAILED: %s does not run:\n%s\n' "$name" "$said" >&2
        exit 1
    fi
    counted=$(sed -n 's/^==[0-9]*== Collected : \([0-9]*\).*/\1/p' <<<"$said")
    echo $((${counted:-0} / count))
}

failed=0
for profile in "${profiles[@]}"; do
    read -r name most most_of_task settings <<<"$profile"
    [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
    environment=()
    for setting in $settings; do environment+=("CARGO_PROFILE_RELEASE_$setting"); done
    env "${environment[@]}" cargo build --quiet --release --manifest-path "$work/Cargo.toml" --target-dir "$work/target"
    # Fibonacci numbers: that of 20 takes this many calls.
    each=$(instructions join 20 21891)
    of_task=$(instructions spawn 1000 1000)
    printf 'codegen: %-12s %3s instructions for a call, at most %s; %3s for a task, at most %s\n' \
        "$name" "$each" "$most" "$of_task" "$most_of_task"
    # None means that nothing was counted.
    ((each > 0 && each <= most && of_task > 0 && of_task <= most_of_task)) || failed=1
done
if ((failed)); then
    echo 'codegen: FAILED: a join or a task takes too many instructions; see which functions are called, with callgrind_annotate' >&2
    exit 1
fi
