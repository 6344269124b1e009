#!/usr/bin/env bash
# Looks at the page of `heist report` in a real Chromium, on a desktop and on a phone, light and dark, and without its script; and at
# pages that are broken on purpose, to see that the look is sharp. Exit code 77, with a line that says why, where it cannot run.
# Pictures are left in target/heist/screens/.
#
#   ci/browser.sh
set -euo pipefail
cd "$(dirname "$0")/.."

# The one that the checks were written with.
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

# A browser leaves things in a home.
check() { HOME=$work timeout 900 node ci/browser/check.mjs "$@"; }

# Must fail, and say this.
must_fail() {
    local expected=$1
    shift
    if check "$@" >"$work/said" 2>&1; then
        printf 'browser: a broken page was let through: %s\n' "$expected" >&2
        return 1
    fi
    if ! grep -q -- "$expected" "$work/said"; then
        printf 'browser: a broken page failed, but not for this: %s\n' "$expected" >&2
        cat "$work/said" >&2
        return 1
    fi
    printf 'browser: as it should, a broken page fails: %s\n' "$expected"
}

page=$work/report.html
report() { cargo run --quiet -p heist-cli -- report "$1" --output "$page" --quiet >/dev/null; }

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

# A file that wants more than to be shown.
sed 's|"rayon"|"<script>alert(1)</script><img src=x onerror=alert(1)>"|g' crates/cli/tests/data/made-up.json >"$work/hostile.json"
report "$work/hostile.json"
check "$page" --views light,phone

# A debug build that was cut short, and numbers of workers that are close together on an axis that ends at 64.
sed -E 's|"rounds": 21|"optimized": false, "complete": false, &|; s|("case":"[a-z]+/)2"|\18"|; s|"workers":2,|"workers":8,|; s|("case":"[a-z]+/)4"|\164"|; s|"workers":4,|"workers":64,|' \
    crates/cli/tests/data/made-up.json >"$work/doubtful.json"
report "$work/doubtful.json"
grep -q 'class="beware"' "$page"
check "$page" --views light,dark,phone

# Queues have neither latencies nor traces.
report bench/record/deque.json
check "$page" --charts comparison --views light,phone-dark
