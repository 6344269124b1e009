#!/usr/bin/env bash
# Looks for what is lost or doubled for longer than a check should take: ci/soak.sh [MINUTES], ten by default. Not part of
# ci/check.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:-10}
[[ $minutes =~ ^[1-9][0-9]*$ ]] || { echo "usage: ci/soak.sh [MINUTES], a whole number of minutes" >&2; exit 2; }

cargo run --release -- soak --minutes "$minutes"
# The engine under our rayon-core is not for programs, and the command does not know it.
for ((run = 0; run < 10 * minutes; run++)); do
    cargo run --quiet --release -p heist --example engines >/dev/null
done
echo "soak: ok: and $((10 * minutes)) runs of engines"
