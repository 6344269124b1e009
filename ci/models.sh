#!/usr/bin/env bash
# Explores the models: loom (orderings, every interleaving) and shuttle (random schedules of larger
# scenarios). An argument is a filter on the names of the models, as for `cargo test`.
set -euo pipefail
cd "$(dirname "$0")/.."

# Each checker has a target directory of its own: its cfg rebuilds everything.
RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}" \
    cargo test --profile model -p heist-deque --test models --target-dir target/loom -- --nocapture "$@"
RUSTFLAGS="--cfg shuttle ${RUSTFLAGS:-}" \
    cargo test --profile model -p heist-deque --test shuttle --target-dir target/shuttle -- "$@"
