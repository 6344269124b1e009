#!/usr/bin/env bash
# Runs heist while what it relies on fails: threads, memory, destructors, the process itself (crates/stress/src/bin/faults).
# docs/RELIABILITY.md has the table of all faults. Each case runs in a process of its own, which is ended if it hangs.
#
#   ci/faults.sh                 the short form, about a minute
#   ci/faults.sh --long          more repetitions, 1,000 workers, 10 million queued tasks, 100,000 pools
#   ci/faults.sh [--long] CASE   the cases whose names contain this
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $(uname) != Linux ]]; then
    printf 'faults: skipped: the cases use what only Linux has\n'
    exit 77
fi

export CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_DEBUG=0
# As in the step run of ci/check.sh, so that nothing is compiled twice.
exec cargo run --release --config 'profile.release.debug-assertions=true' \
    --config 'profile.release.package."*".debug-assertions=false' -p heist-stress --bin faults -- "$@"
