#!/usr/bin/env bash
# Checks what the published crates depend on: the trees are those of docs/DEPENDENCIES.md, and, with cargo-deny, licences, duplicates and
# sources are those that deny.toml allows.
#
#   ci/supply.sh             without cargo-deny, its part is left out, and a line says so
#   ci/supply.sh --install   installs cargo-deny into target/tools, which takes some minutes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=$PWD/target/tools
if [[ ${1:-} == --install ]]; then
    CARGO_TARGET_DIR=$tools/build exec cargo install cargo-deny --locked --debug --root "$tools"
fi

# listed CRATE: the packages in the table of that crate.
listed() { awk -v crate="## $1" -F '|' '/^## /{on = $0 == crate} on && /^\| `/{print $2}' docs/DEPENDENCIES.md | tr -d '` ' | tr ',' '\n' | sort; }

# tree ARGUMENTS...: the packages in a tree without its root.
tree() { cargo tree --locked --edges normal,build --target all --prefix none "$@" | awk 'NR > 1 {print $1}' | sort -u; }

compare() {
    local crate=$1
    shift
    if ! difference=$(diff <(listed "$crate") <(tree "$@")); then
        printf 'supply: FAILED: the tree of %s (>) is not that of docs/DEPENDENCIES.md (<):\n%s\n' "$crate" "$difference" >&2
        exit 1
    fi
}

compare heist-deque -p heist-deque
compare heist -p heist --features tracing,prometheus,futures,indicatif
compare rayon-core --manifest-path crates/rayon-core/Cargo.toml
printf 'supply: ok: the trees of heist-deque, heist and rayon-core\n'

export PATH=$tools/bin:$PATH
if ! command -v cargo-deny >/dev/null; then
    printf 'supply: licences, duplicates and sources are not checked: cargo-deny is missing, and `ci/supply.sh --install` installs it\n'
    exit 0
fi
# denied MANIFEST OPTION... check CHECK...: what deny.toml says of that package.
denied() {
    local package=$1
    shift
    cargo deny --locked --manifest-path "$package/Cargo.toml" --config "$PWD/deny.toml" "$@"
}
for package in . crates/rayon-core crates/cluster examples/axum bench/rayon/stock bench/rayon/heist; do
    denied "$package" --all-features check --hide-inclusion-graph licenses sources
done
denied crates/deque --exclude-dev check bans
denied crates/heist --exclude-dev --features tracing,prometheus,futures,indicatif check bans
denied crates/rayon-core --exclude-dev check bans
printf 'supply: ok: licences, duplicates and sources\n'
