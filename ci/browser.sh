#!/usr/bin/env bash
# Checks the pages of `heist report`, for measurements and for simulations, in a real Chromium: on a desktop and on a phone,
# light and dark, and without the script of the page. Pages that are broken on purpose show that the checks find faults.
# Leaves pictures in target/heist/screens/.
#
# Exit code 77: skipped, and a line that says why.
#
#   ci/browser.sh
set -euo pipefail
cd "$(dirname "$0")/.."

# The version with which the checks were written.
playwright=1.56.1

skip() {
    printf 'browser: skipped: %s\n' "$1"
    exit 77
}

command -v node >/dev/null && command -v npm >/dev/null || skip "needs node and npm"
if ! command -v chromium >/dev/null; then
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || skip "needs chromium"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core; } \
        >/dev/null 2>&1 || skip "chromium cannot be installed"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HEIST_NODE=$work HEIST_CHROMIUM
HEIST_CHROMIUM=$(command -v chromium)
npm install --prefix "$work" --cache "$work/cache" --no-save --no-package-lock --no-audit --no-fund --loglevel error "playwright-core@$playwright" >/dev/null 2>&1 ||
    skip "playwright-core cannot be had from the package registry"

# The browser writes to its home directory.
check() { HOME=$work timeout 900 node ci/browser/check.mjs "$@"; }

# must_fail MESSAGE ARGUMENTS...: the check must fail with this message.
must_fail() {
    local expected=$1
    shift
    if check "$@" >"$work/said" 2>&1; then
        printf 'browser: a broken page passed the check that should report: %s\n' "$expected" >&2
        return 1
    fi
    if ! grep -q -- "$expected" "$work/said"; then
        printf 'browser: a broken page failed for another reason than: %s\n' "$expected" >&2
        cat "$work/said" >&2
        return 1
    fi
    printf 'browser: a broken page fails as expected: %s\n' "$expected"
}

# As in the step run of ci/check.sh, in which it is compiled.
heist() { cargo run --quiet --release -p heist-cli "$@"; }

page=$work/report.html
report() { heist -- report "$1" --output "$page" --quiet >/dev/null; }

report crates/cli/tests/data/made-up.json
check "$page" --screens target/heist/screens

broken=$work/broken.html
sed 's|</body>|<script>console.error("broken")</script></body>|' "$page" >"$broken"
must_fail 'console error' "$broken" --views light
perl -0pe 's|<svg data-chart="steals".*?</svg>||gs' "$page" >"$broken"
must_fail 'no chart: steals' "$broken" --views light
sed 's|data-chart="latency"|& opacity="0"|' "$page" >"$broken"
must_fail 'looks blank' "$broken" --views light
sed 's|<footer>|&<svg width="400" height="1"></svg>|' "$page" >"$broken"
must_fail 'the page is' "$broken" --views phone

# A result file with markup in its names: the page must show it as text.
sed 's|"rayon"|"<script>alert(1)</script><img src=x onerror=alert(1)>"|g' crates/cli/tests/data/made-up.json >"$work/hostile.json"
report "$work/hostile.json"
check "$page" --views light,phone

# Results of a debug build that was interrupted, with numbers of workers that are close together on an axis up to 64.
sed -E 's|"rounds": 21|"optimized": false, "complete": false, &|; s|("case":"[a-z]+/)2"|\18"|; s|"workers":2,|"workers":8,|; s|("case":"[a-z]+/)4"|\164"|; s|"workers":4,|"workers":64,|' \
    crates/cli/tests/data/made-up.json >"$work/doubtful.json"
report "$work/doubtful.json"
grep -q 'class="beware"' "$page"
check "$page" --views light,dark,phone

# Results of the queues, which have neither latencies nor traces.
report bench/record/deque.json
check "$page" --charts comparison --views light,phone-dark

# A simulation: several workloads, all strategies, and a band from the worst seed to the best.
heist -- sim --cores 1,2,4,8,16 --workload spawn,join,scope --strategy all --span 100 --seeds 2 \
    --json "$work/simulated.json" --quiet >/dev/null
simulated=efficiency,split,ends
report "$work/simulated.json"
check "$page" --charts "$simulated" --screens target/heist/screens/simulated

perl -0pe 's|<svg data-chart="split".*?</svg>||gs' "$page" >"$broken"
must_fail 'no chart: split' "$broken" --charts "$simulated" --views light
sed 's|data-chart="efficiency"|& opacity="0"|' "$page" >"$broken"
must_fail 'looks blank' "$broken" --charts "$simulated" --views light

# Names of machines and of source files with markup in them.
perl -pe 's|"name":"|$&<script>alert(1)</script>|; s|"place":"|$&<img src=x onerror=alert(1)>|g' "$work/simulated.json" >"$work/hostile.json"
report "$work/hostile.json"
grep -q 'onerror' "$page"
check "$page" --charts "$simulated" --views light,phone

# One number of cores and one seed: curves of a single point.
heist -- sim --cores 8 --workload loop --span 100 --seeds 1 --json "$work/simulated.json" --quiet >/dev/null
report "$work/simulated.json"
check "$page" --charts "$simulated" --views light,dark,phone
