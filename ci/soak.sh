#!/usr/bin/env bash
# Hammers the queues and the pool for longer than a check should take: ci/soak.sh [MINUTES], ten by default. Not
# part of ci/check.sh. Stops at the first item or task that is lost or doubled.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:-10}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || { echo "usage: ci/soak.sh [MINUTES], a whole number of minutes" >&2; exit 2; }

cargo build --release --example stress --example strategies --example forks --example engines --example pipelines
log=$(mktemp)
trap 'rm -f "$log"' EXIT
runs=0
end=$((SECONDS + 60 * minutes))
while ((SECONDS < end)); do
    for example in stress strategies forks engines pipelines; do
        if ! target/release/examples/$example >"$log" 2>&1; then
            cat "$log" >&2
            echo "soak: FAILED: $example in run $((runs + 1))" >&2
            exit 1
        fi
    done
    runs=$((runs + 1))
    ((runs % 100)) || echo "soak: $runs runs, $((end - SECONDS)) s to go"
done
echo "soak: ok: $runs runs, nothing lost, nothing doubled"
