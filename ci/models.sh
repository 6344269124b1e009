#!/usr/bin/env bash
# Explores the models: loom (orderings, every interleaving) and shuttle (random schedules of larger
# scenarios). An argument is a filter on the names of the models, as for `cargo test`.
set -euo pipefail
cd "$(dirname "$0")/.."

# Each checker has a target directory of its own: its cfg rebuilds everything.
loom() { RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}" cargo test --profile model --target-dir target/loom --features loom "$@"; }

loom -p heist-deque --test models -- --nocapture "$@"
loom -p heist --lib -- --nocapture "$@"
ci/schedules.sh "$@"
