#!/usr/bin/env bash
# Every check, each with its time. Any failure stops the run.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo fmt --all --check
cargo clippy --workspace --all-targets -- -D warnings
cargo test --workspace
cargo run --release --example stress
