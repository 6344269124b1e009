# Sourced by ci/rayon-suite.sh and ci/rayon-clients.sh: fetches published crates, runs their tests on our rayon-core, and
# checks that the tests did run on it.
#
# HEIST_RAYON_CORE is the directory of the crate that replaces rayon-core. The default is crates/rayon-core.
# shellcheck shell=bash

me=$(basename "$0" .sh)
fail() {
    printf '%s: FAILED: %s\n' "$me" "$1" >&2
    exit 1
}

core=${HEIST_RAYON_CORE:-crates/rayon-core}
[[ -f $core/Cargo.toml ]] || fail "there is no crate in $core"
core=$(cd "$core" && pwd -P)
work=$PWD/target/$me
mkdir -p "$work"
export CARGO_TARGET_DIR=$work/target
export CARGO_PROFILE_DEV_DEBUG=0
unset RAYON_NUM_THREADS RAYON_RS_NUM_CPUS

# Every test process writes its process id, so that the line that a pool logs can be attributed to a test process.
cat >"$work/runner" <<'SH'
#!/bin/sh
echo "$$" >>"$HEIST_RAYON_PIDS"
exec "$@"
SH
chmod +x "$work/runner"

ours=(--config "patch.crates-io.rayon-core.path=\"$core\""
    --config "target.\"cfg(all())\".runner=\"$work/runner\"")

# fetch NAME=VERSION...: the sources as published, in $work/vendor/NAME-VERSION.
fetch() {
    local package missing=()
    for package in "$@"; do
        [[ -d $work/vendor/${package/=/-} ]] || missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    rm -rf "$work/fetch" "$work/vendor"
    mkdir -p "$work/fetch/src"
    touch "$work/fetch/src/lib.rs"
    {
        printf '[package]\nname = "fetch"\nedition = "2021"\n\n[workspace]\n\n[dependencies]\n'
        for package in "$@"; do
            printf '%s = "=%s"\n' "${package%=*}" "${package#*=}"
        done
    } >"$work/fetch/Cargo.toml"
    (cd "$work/fetch" && cargo vendor -q --respect-source-config --versioned-dirs vendor >/dev/null)
    mv "$work/fetch/vendor" "$work/vendor"
}

# unpack NAME=VERSION: makes a fresh copy in $work/NAME that is not part of our workspace.
unpack() {
    rm -rf "${work:?}/${1%=*}"
    cp -R "$work/vendor/${1/=/-}" "$work/${1%=*}"
    printf '\n[workspace]\n' >>"$work/${1%=*}/Cargo.toml"
}

# settle [FEATURES]: replaces rayon-core by our crate in the lock file of the package in the current directory, and checks
# the result. A published lock file pins the original rayon-core; cargo would then only warn that the patch is unused. All
# other versions stay pinned.
settle() {
    if [[ -f Cargo.lock ]]; then
        awk 'BEGIN { RS = ""; ORS = "\n\n" } !/\nname = "rayon-core"\n/' Cargo.lock >Cargo.lock.new
        mv Cargo.lock.new Cargo.lock
    fi
    # Offline only if there is no network: offline, cargo drops the pins of packages that have not been downloaded.
    cargo "${ours[@]}" update -q --workspace || cargo "${ours[@]}" update -q --workspace --offline
    local tree
    tree=$(cargo "${ours[@]}" tree -q --locked -i rayon-core "$@")
    # If there were two crates called rayon-core, cargo would have failed.
    [[ ${tree%%$'\n'*} == "rayon-core v"*" ($core)" ]] || fail "the tests would not run on $core:"$'\n'"$tree"
    printf '%s\n' "$tree"
}

# Seconds after which a run is considered to hang.
limit=${HEIST_RAYON_LIMIT:-1800}
child=
trap '[[ -z $child ]] || kill "$child"' EXIT
total=0

# tests NAME PASSED PROCESSES ARGUMENTS...: runs `cargo test ARGUMENTS` in the current directory. Fails unless at least PASSED
# tests passed, and at least PROCESSES test processes had a pool of our crate.
tests() {
    local name=$1 least=$2 least_processes=$3 log=$work/$1.log code=0 begun=$SECONDS
    shift 3
    rm -f "$work/$name".{log,pids,pools}
    touch "$work/$name".{pids,pools}
    export HEIST_RAYON_PIDS=$work/$name.pids HEIST_RAYON_LOG=$work/$name.pools

    # In the background, because a shell that waits for `timeout` cannot be interrupted.
    timeout -k 10 "$limit" cargo "${ours[@]}" test --locked --no-fail-fast "$@" >"$log" 2>&1 &
    child=$!
    wait "$child" || code=$?
    child=
    if ((code)); then
        grep -vE '^(test .* ok|)$' "$log" >&2 || true
        ((code != 124 && code != 137)) || fail "$name: hangs: not done after ${limit}s, see $log"
        fail "$name: exit code $code, see $log"
    fi

    local passed processes
    passed=$(awk '/^test result: ok\./ { n += $4 } END { print n + 0 }' "$log")
    processes=$(awk 'NR == FNR { test[$1]; next }
        /^rayon-core .* on heist / && $NF in test && !seen[$NF]++ { n++ }
        END { print n + 0 }' \
        "$work/$name".{pids,pools})
    printf '%s: %s: %s tests passed, %s pools in %s test processes, %ss\n' "$me" "$name" "$passed" \
        "$(wc -l <"$work/$name.pools")" "$processes" "$((SECONDS - begun))"
    sed -nE 's/^test (.*) \.\.\. ignored.*/    ignored by its authors: \1/p' "$log"
    ((passed >= least)) || fail "$name: only $passed tests passed, $least are known to"
    ((processes >= least_processes)) ||
        fail "$name: only $processes test processes had a pool of $core, $least_processes should"
    total=$((total + passed))
}
