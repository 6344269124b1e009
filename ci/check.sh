#!/usr/bin/env bash
# Every check that a change must pass, each with its time. Any failure stops the run. Cheap steps come first.
#
#   ci/check.sh            all of them
#   ci/check.sh fmt docs   only these
set -euo pipefail
cd "$(dirname "$0")/.."

# Nothing here is compiled a second time after a change, and no debugger is used on what is built here. asan and tsan, whose
# reports need line numbers, ask for them.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_RELEASE_DEBUG=0

# A release build in which our own packages have debug assertions. Dependencies are those of a plain release build.
checked=(--release --config 'profile.release.debug-assertions=true' --config 'profile.release.package."*".debug-assertions=false')

# Warnings are errors in what is ours, whatever the step.
deny=(-- -D warnings)

# Packages outside the workspace: one lock file cannot contain two packages that link `rayon-core`, nothing but an example
# needs a web server, and nothing but heist-cluster a client of NATS.
own_lock=(crates/rayon-core crates/cluster bench/rayon/stock bench/rayon/heist examples/axum)

# The optional features of heist.
extras=heist/tracing,heist/prometheus,heist/futures,heist/indicatif

# Which features a dependency has depends on the packages that a command names, and with others it is compiled again. With
# heist-cli they are those that it has in the whole workspace.
as_workspace=(-p heist-cli)

# Where everything is built that is built for the machine as it is: most of what packages with their own lock file depend on
# is compiled for others as well.
target=${CARGO_TARGET_DIR:-target}

# on PACKAGE COMMAND ARGUMENTS...: runs a cargo command on a package with its own lock file, which must be up to date.
on() {
    local package=$1 command=$2
    shift 2
    cargo "$command" --locked --manifest-path "$package/Cargo.toml" --target-dir "$target" "$@"
}

step_fmt() {
    cargo fmt --all --check
    for package in "${own_lock[@]}"; do cargo fmt --manifest-path "$package/Cargo.toml" --check; done
    rustfmt --edition 2024 --check bench/revisions/main.rs crates/sim/peers/src/main.rs ci/codegen.rs
}

# Sources that must not reach around `sync`: no model checker would see it, and no simulation would charge it. The checkers
# and the simulator do not look at the other crates.
under_sync=('crates/heist/src/**' 'crates/deque/src/**' ':!crates/*/src/sync/**' ':!crates/heist/src/models/**')

# outside_sync PATTERN EXCEPTION...: fails if one of these sources uses the pattern outside of comments and exceptions.
outside_sync() {
    local pattern=$1
    shift
    ! git grep -nE "$pattern" -- "${under_sync[@]}" "${@/#/:!}" | grep -vE '^[^:]+:[0-9]+: *//'
}

# Checks the layers of heist, and that atomics, cells, locks, threads, the clock, thread-locals and the allocator come only
# through `sync`.
step_facade() {
    ci/layers.sh
    ci/unsafe.sh
    outside_sync '(core|std)::(sync::(atomic|Arc|Weak|Mutex)|cell::UnsafeCell|thread::)'
    outside_sync '(core|std)::sync::\{.*\b(Arc|Weak|Mutex|Condvar|atomic)\b'
    # A duration is a number, an instant is a clock.
    outside_sync '\b(std::time::(Instant|SystemTime)|std::time::\{.*(Instant|SystemTime))'
    outside_sync '\bstd::thread_local!'
    outside_sync '(core|std)::arch::'
    # The file of a trace is written when the program ends, and the global pool is none of a simulation's.
    outside_sync 'std::sync::.*\b(OnceLock|LazyLock)\b' \
        crates/heist/src/trace/file.rs crates/heist/src/api/global.rs
    outside_sync '(std|alloc)::alloc::(\{.*\b)?(alloc|alloc_zeroed|dealloc|realloc)\b'
    # What the operating system says of the machine is no part of the scheduler.
    outside_sync 'available_parallelism\(' 'crates/heist/src/topology/**'
}

step_clippy() {
    cargo clippy --workspace --all-targets "${deny[@]}"
    cargo clippy --workspace --all-targets --features heist-bench/peers "${deny[@]}"
    # Not the whole workspace: to the simulator, `heist` is another package.
    cargo clippy -p heist "${as_workspace[@]}" --all-targets --features "$extras" "${deny[@]}"
    cargo clippy -p heist-deque --no-default-features "${deny[@]}"
    for package in "${own_lock[@]}"; do on "$package" clippy --all-targets "${deny[@]}"; done
    on crates/cluster clippy --all-targets --features command "${deny[@]}"
}

step_docs() {
    export RUSTDOCFLAGS="-D warnings"
    cargo doc --workspace --no-deps
    cargo doc -p heist --no-deps --features "$extras"
    on crates/rayon-core doc --no-deps
    on crates/cluster doc --no-deps
}

# The second command of the README; the optional features; and the engine as on a system without a fence for other threads.
step_test() {
    cargo test --workspace
    cargo test -p heist "${as_workspace[@]}" --features "$extras" --test spans --test prometheus --test futures --test sources --test auto_traits \
        -- --skip misuse_does_not_compile
    cargo test -p heist "${as_workspace[@]}" --features "$extras" --doc -- prometheus future stream progress async
    RUSTC_WORKSPACE_WRAPPER=$PWD/ci/no-membarrier.sh cargo test -p heist "${as_workspace[@]}" --test engine
}

# The least efficiencies on virtual cores. Their figures are those of a plain release build: debug assertions cost virtual time.
step_sim() { cargo test --release -p heist-sim-workloads "${as_workspace[@]}" --test floors; }

# The first command of the README, the stress tests and the examples.
step_run() {
    cargo run --release
    cargo run --release -- soak --minutes 0.3
    cargo run "${checked[@]}" -p heist-stress -- --seed 1
    # Not in a release build, for which all that the tests depend on would be compiled again; and with the features that heist
    # has in the step test, in which it was built.
    cargo build --workspace --example skew
    "$target/debug/examples/skew"
    on examples/axum test
}

# Threads that are refused, memory that is refused, forked processes, panics in destructors, and so on.
step_faults() { ci/faults.sh; }

# Pipelines across processes, on real servers of NATS.
step_cluster() { ci/cluster.sh; }

# The tests of our rayon-core, and the published tests of rayon and rayon-core on it.
step_rayon() {
    on crates/rayon-core test
    ci/rayon-suite.sh
}

# The benchmarks run and verify their results. Their timings mean nothing here. The tests of the step test run every case with a
# small size.
step_bench() {
    # Without debug assertions, with which the command would be compiled again; the tests have them.
    cargo run --release --features peers -- bench --quiet --rounds 1 \
        fib/2 spawn/tree/2 scope/pairs latency/after-1ms pipeline/small reduce >/dev/null
    on bench/rayon/stock test
    # Without the long link of a measurement.
    export CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
    bench/rayon/run.sh --check
    bench/revisions/run.sh HEAD HEAD --processes 1 --rounds 1
}

# The pages of `heist report` in a real Chromium.
step_browser() { ci/browser.sh; }

# The public API is the recorded one.
step_api() { ci/api.sh; }

# The packages that would be published, and what they depend on.
step_package() {
    ci/supply.sh
    ci/package.sh
}

# The instructions of a join in the builds of users.
step_codegen() { ci/codegen.sh; }

# The library crates on the oldest supported Rust.
step_msrv() { ci/msrv.sh; }

step_models() { ci/models.sh; }

# What the models cannot show, put to memory models.
step_litmus() { ci/litmus.sh; }

step_asan() { ci/asan.sh; }
step_tsan() { ci/tsan.sh; }

steps=("$@")
((${#steps[@]})) || steps=(fmt facade clippy docs package api codegen test sim msrv rayon cluster run faults bench browser models litmus asan tsan)
for step in "${steps[@]}"; do
    declare -F "step_$step" >/dev/null || { printf 'check: there is no step %s\n' "$step" >&2; exit 2; }
done

# The browser keeps one processor busy at most. The steps after it go on meanwhile; its output is shown at the end.
aside=browser
aside_pid=
log=$(mktemp)
trap '[[ -z $aside_pid ]] || kill -- "-$aside_pid" 2>/dev/null || true; rm -f "$log" "$log.took"' EXIT

# In a subshell with -e of its own: `step || ...` would switch it off.
run_step() { (set -euo pipefail; "step_$1"); }

summary=()
# finish STEP CODE SECONDS: records how a step has ended.
finish() {
    case $2 in
    0) summary+=("ok       $1  $3s") ;;
    # The step has said why in a line of its own.
    77) summary+=("skipped  $1  $3s") ;;
    *)
        printf '\ncheck: FAILED: %s (exit code %s, after %ss)\n' "$1" "$2" "$3" >&2
        exit 1
        ;;
    esac
    printf '=== %s: %ss ===\n' "$1" "$3"
}

# Waits for the step that runs aside, if there is one.
collect() {
    [[ -n $aside_pid ]] || return 0
    local code=0
    wait "$aside_pid" || code=$?
    aside_pid=
    printf '\n=== %s, beside the others ===\n' "$aside"
    cat "$log"
    finish "$aside" "$code" "$(cat "$log.took")"
}

started=$SECONDS
for step in "${steps[@]}"; do
    begun=$SECONDS
    if [[ $step == "$aside" && $step != "${steps[-1]}" ]]; then
        printf '\n=== %s: goes on beside the next steps ===\n' "$step"
        # With job control it is a process group of its own, which can be ended as a whole.
        set -m
        {
            set +e
            run_step "$step"
            code=$?
            echo "$((SECONDS - begun))" >"$log.took"
            exit "$code"
        } >"$log" 2>&1 &
        aside_pid=$!
        set +m
        continue
    fi
    printf '\n=== %s ===\n' "$step"
    set +e
    run_step "$step"
    code=$?
    set -e
    finish "$step" "$code" "$((SECONDS - begun))"
done
collect

printf '\n'
printf '%s\n' "${summary[@]}"
printf 'check: all passed in %ss\n' "$((SECONDS - started))"
