#!/usr/bin/env bash
# Looks for lost and doubled tasks and items, for longer than a check should take: ci/soak.sh [MINUTES], ten by default. Not
# part of ci/check.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:-10}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || { echo "usage: ci/soak.sh [MINUTES], a whole number of minutes" >&2; exit 2; }

cargo run --release -- soak --minutes "$minutes"
# The command does not test the engine under our rayon-core, which is not for programs.
for ((run = 0; run < 10 * minutes; run++)); do
    cargo run --quiet --release -p heist-stress -- engines >/dev/null
done
# Runs the scenarios with new schedules. A round takes some minutes.
rounds=$(((minutes + 4) / 5))
for ((round = 0; round < rounds; round++)); do
    seed=$((RANDOM << 15 | RANDOM))
    SHUTTLE_RANDOM_SEED=$seed ci/schedules.sh >/dev/null || { echo "soak: FAILED: SHUTTLE_RANDOM_SEED=$seed ci/schedules.sh" >&2; exit 1; }
done
echo "soak: ok: and $((10 * minutes)) runs of stress engines, $rounds rounds of new schedules"
