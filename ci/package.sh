#!/usr/bin/env bash
# Packages heist-deque and heist from a clean clone, as they would be published, builds them from the packages, and checks
# what is in these: sources, README and licences, and nothing else. Looks at what is committed, not at the working tree.
#
# heist depends on a version of heist-deque that the registry need not have: cargo packages both in one command, and builds
# heist with the heist-deque that it has just packaged.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

crates=(heist-deque heist)

fail() {
    printf 'package: FAILED: %s\n' "$1" >&2
    exit 1
}

target=$PWD/target/package-check
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$target/package"
# Cargo unpacks heist-deque once for each path of a target directory, and would use what it has unpacked for an earlier run.
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/heist-deque-*
git clone --quiet --local --no-hardlinks . "$work/clone"
cd "$work/clone"

# Cargo warns of every test that is not in the package.
CARGO_TARGET_DIR=$target CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 \
    cargo package --locked "${crates[@]/#/-p}" 2>&1 | { grep -vE '^warning: ignoring (test|example) ' || true; }

# The same commit gives the same bytes, wherever and whenever it is packaged.
again=$work/elsewhere/again
git clone --quiet --no-local "$work/clone" "$again"
(cd "$again" && CARGO_TARGET_DIR=$work/again-target cargo package --quiet --locked --no-verify "${crates[@]/#/-p}" 2>/dev/null)

for crate in "${crates[@]}"; do
    archive=("$target/package/$crate"-[0-9]*.crate)
    cmp "${archive[0]}" "$work/again-target/package/${archive[0]##*/}" ||
        fail "two packages of $crate from the same commit differ"
    # Names inside the package, without its directory.
    tar -tzf "${archive[0]}" | sed 's|^[^/]*/||' | sort >"$work/files"
    for file in Cargo.toml README.md LICENSE-MIT LICENSE-APACHE src/lib.rs; do
        grep -qx "$file" "$work/files" || fail "$file is not in the package of $crate"
    done
    # Links to the licences must have become files.
    tar -xzOf "${archive[0]}" --wildcards '*/LICENSE-MIT' | grep -q 'Permission is hereby granted' ||
        fail "LICENSE-MIT in the package of $crate is not the licence"
    if others=$(grep -vE '^(src/.*\.(rs|md)|README\.md|LICENSE-(MIT|APACHE)|Cargo\.(toml|toml\.orig|lock)|\.cargo_vcs_info\.json)$' "$work/files"); then
        fail "what does not belong in the package of $crate: ${others//$'\n'/ }"
    fi
    printf 'package: ok: %s, %s files, %s bytes\n' "$crate" "$(wc -l <"$work/files")" "$(stat -c %s "${archive[0]}")"
done
