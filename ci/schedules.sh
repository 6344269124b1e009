#!/usr/bin/env bash
# Runs the scenarios under shuttle, always with the same schedules, or with those of a seed: SHUTTLE_RANDOM_SEED=N. An argument
# is a filter on the names of the scenarios, as for `cargo test`.
set -euo pipefail
cd "$(dirname "$0")/.."

shuttle() { RUSTFLAGS="--cfg shuttle ${RUSTFLAGS:-}" cargo test --profile model --target-dir target/shuttle --features shuttle "$@"; }

shuttle -p heist-deque --test shuttle -- "$@"
shuttle -p heist --features futures --test shuttle -- "$@"
