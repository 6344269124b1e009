# Sourced by ci/msrv.sh and ci/ports.sh: a workspace that the oldest supported Rust can build.
#
# The workspace's lock file has dependencies of tests and of the command that need a newer Rust. So these scripts use a
# workspace of their own, which is generated under target: links to the sources of the library crates, copies of their
# manifests, and a lock file for which cargo chooses dependencies that support the oldest Rust.
#
# The caller defines `work`, a temporary directory that it removes when it ends.
# shellcheck shell=bash disable=SC2154

# oldest_workspace SPACE: brings the workspace in the directory SPACE up to date, with RUSTC as the compiler.
oldest_workspace() {
  local space=$1 manifest crate members=()
  rm -rf "$space/crates"
  mkdir -p "$space/crates"
  for manifest in crates/*/Cargo.toml; do
    crate=${manifest%/Cargo.toml}
    # No library, or not for the oldest Rust.
    case ${crate##*/} in cli | stress | sim) continue ;; esac
    mkdir "$space/$crate"
    ln -s "$PWD/$crate"/[!C]* "$space/$crate/"
    cp "$PWD/$crate"/Cargo.* "$space/$crate/"
    # A crate with a workspace of its own keeps it.
    grep -qx '\[workspace\]' "$manifest" || members+=("\"$crate\"")
  done
  {
    printf '[workspace]\nresolver = "3"\nmembers = [%s]\nexclude = ["crates/rayon-core"]\n\n' "$(IFS=,; echo "${members[*]}")"
    sed -n '/^\[workspace\.package\]/,$p' Cargo.toml
  } >"$work/Cargo.toml"
  cmp -s "$work/Cargo.toml" "$space/Cargo.toml" || cp "$work/Cargo.toml" "$space/"
  # Cargo's resolver takes the `rust-version` of the members as a limit.
  [[ -f $space/Cargo.lock && ! $space/Cargo.toml -nt $space/Cargo.lock ]] || {
    rm -f "$space/Cargo.lock"
    (cd "$space" && cargo generate-lockfile --quiet)
  }
}
