#!/usr/bin/env bash
# Builds the programs on stock rayon-core and on heist, and compares them. The arguments go to `compare`:
#
#   bench/rayon/run.sh --rounds 5 --case join
#   bench/rayon/run.sh --check
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
unset CARGO_TARGET_DIR

# The placement of a short loop by the compiler can cost a third of its speed, and the two programs differ in that by
# chance. Therefore all loops and functions start at a cache line, in both.
export RUSTFLAGS="${RUSTFLAGS:-} -C llvm-args=-align-loops=64 -C llvm-args=-align-all-functions=6"

# Packages that do not depend on rayon-core are the same in both.
program() { echo "$target/rayon/release/heist-bench-rayon-$1"; }

for side in stock heist; do
    cargo build --release --manifest-path "$here/$side/Cargo.toml" --target-dir "$target/rayon"
done

# Cargo only warns about an unused patch.
tree=$(cargo tree --manifest-path "$here/heist/Cargo.toml" -i rayon-core)
printf '%s\n\n' "$tree" >&2
if ! grep -qF "($root/crates/rayon-core)" <<<"$tree"; then
    echo "run.sh: the second program was not built with crates/rayon-core; check the version of that package" >&2
    exit 1
fi

exec "$(program stock)" compare --stock "$(program stock)" --heist "$(program heist)" "$@"
