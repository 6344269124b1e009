#!/usr/bin/env bash
# Every check that a change must pass, each with its time. Any failure stops the run.
#
#   ci/check.sh            all of them
#   ci/check.sh fmt docs   only these
set -euo pipefail
cd "$(dirname "$0")/.."

# Warnings are errors in what is ours, whatever the step.
deny=(-- -D warnings)

# Packages outside of the workspace: two that link `rayon-core` cannot stand in one lock file.
own_lock=(crates/rayon-core bench/rayon/stock bench/rayon/heist)

# What heist can do besides.
extras=tracing,prometheus

# A cargo command on a package with a lock file of its own, which must be up to date.
on() {
    local package=$1 command=$2
    shift 2
    cargo "$command" --locked --manifest-path "$package/Cargo.toml" --target-dir "target/${package//\//-}" "$@"
}

step_fmt() {
    cargo fmt --all --check
    for package in "${own_lock[@]}"; do cargo fmt --manifest-path "$package/Cargo.toml" --check; done
    rustfmt --edition 2024 --check bench/revisions/main.rs
}

# Atomics, cells, locks and threads come through `sync`, or no model checker would see them. None looks at rayon-core, at the stress tests, nor at the command.
step_facade() {
    ! git grep -nE '(core|std)::(sync::(atomic|Arc|Mutex)|cell::UnsafeCell|thread::)' -- 'crates/*/src/**' \
        ':!crates/*/src/sync/**' ':!crates/rayon-core/**' ':!crates/stress/**' ':!crates/testkit/**' ':!crates/cli/**' | grep -vE '^[^:]+:[0-9]+: *//'
}

step_clippy() {
    cargo clippy --workspace --all-targets "${deny[@]}"
    cargo clippy -p heist-bench -p heist-cli --all-targets --features peers "${deny[@]}"
    cargo clippy -p heist-deque --no-default-features "${deny[@]}"
    cargo clippy -p heist --all-targets --features "$extras" "${deny[@]}"
    for package in "${own_lock[@]}"; do on "$package" clippy --all-targets "${deny[@]}"; done
}

step_docs() {
    export RUSTDOCFLAGS="-D warnings"
    cargo doc --workspace --no-deps
    cargo doc -p heist --no-deps --features "$extras"
    on crates/rayon-core doc --no-deps
}

# The second command of the README; what is behind features; and an engine as it is where the system has no fence for other threads.
step_test() {
    cargo test --workspace
    cargo test -p heist --features "$extras" --test spans --test prometheus
    cargo test -p heist --features "$extras" --doc prometheus
    RUSTFLAGS="--cfg heist_no_membarrier" cargo test --target-dir target/no-membarrier -p heist --test engine -- \
        --skip the_second_half_of_a_nested_join_can_be_stolen
}

# The first command of the README, and everything else that runs by itself; without the long link of a release.
step_run() {
    cargo run --release
    cargo run --release -- soak --minutes 0.3
    cargo run --profile model -p heist-stress
    cargo run --profile model -p heist --example skew
}

# Our rayon-core: its own tests, and those of rayon and of rayon-core as published.
step_rayon() {
    on crates/rayon-core test
    ci/rayon-suite.sh
}

# The benchmark runs, and finds that nothing is lost or doubled; its figures mean nothing here.
step_bench() {
    cargo run --profile model --features peers -- bench --quiet --rounds 1 >/dev/null
    on bench/rayon/stock test
    bench/rayon/run.sh --check
    bench/revisions/run.sh HEAD HEAD --processes 1 --rounds 1
}

# The page of `heist report`, looked at in a real Chromium.
step_browser() { ci/browser.sh; }

step_models() { ci/models.sh; }
step_asan() { ci/asan.sh; }
step_tsan() { ci/tsan.sh; }

steps=("$@")
((${#steps[@]})) || steps=(fmt facade clippy docs test rayon run bench browser models asan tsan)

summary=()
started=$SECONDS
for step in "${steps[@]}"; do
    printf '\n=== %s ===\n' "$step"
    begun=$SECONDS
    code=0
    # In a subshell with -e of its own: `step || ...` would switch it off.
    set +e
    (set -euo pipefail; "step_$step")
    code=$?
    set -e
    took=$((SECONDS - begun))
    case $code in
    0) summary+=("ok       $step  ${took}s") ;;
    # The step has said why in a line of its own.
    77) summary+=("skipped  $step  ${took}s") ;;
    *)
        printf '\ncheck: FAILED: %s (exit code %s, after %ss)\n' "$step" "$code" "$took" >&2
        exit 1
        ;;
    esac
    printf '=== %s: %ss ===\n' "$step" "$took"
done

printf '\n'
printf '%s\n' "${summary[@]}"
printf 'check: all passed in %ss\n' "$((SECONDS - started))"
