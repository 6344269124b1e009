#!/usr/bin/env bash
# Puts the orderings that no checker shows by running the code to herd7, a simulator of memory models: ci/litmus/*.litmus.
# docs/ORDERINGS.md, "Litmus tests", says which test belongs to which ordering.
#
#   ci/litmus.sh           all of them
#   ci/litmus.sh claim     only this one
#
# A test asks whether an outcome is possible that the code excludes. It passes if the model forbids that outcome. A line
# `twin NAMES: SED` in the comment of a test is the same test with an ordering weakened, by that command of sed, and the
# model must allow the outcome there, or find a data race.
#
# Tests in C are put to ci/litmus/rust.cat, the memory model of Rust. Tests for AArch64, in which code is written as the
# compiler translates it, are put to Arm's own model, which comes with herd7.
#
# A herd7 of the system is used if there is one, else that of Debian's unstable suite, which is unpacked under target/litmus
# together with the C library that it needs. Nothing is installed, and apt's own state stays as it is.
#
# Exit code 77: skipped, and a line that says why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { echo "litmus: $*"; }
skip() { say "skipped: $*"; exit 77; }
fail() { say "FAILED: $*" >&2; exit 1; }

cache=$PWD/target/litmus
mkdir -p "$cache"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=ci/debian-rust.sh
source ci/debian-rust.sh

# The mirror from which this system has its own packages.
mirror() { apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Component: main' | { grep -v security || true; } | sed -n 1p; }

# fetch ROOT: unpacks herd7 of Debian's unstable suite, and its libraries, into the directory ROOT.
fetch() {
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg deb mirror
  needs_debian
  [[ -r $keys ]] || skip "no $keys, not a Debian system"
  mirror=$(mirror)
  [[ -n $mirror ]] || { apt-get -qq update >/dev/null 2>&1 || true; mirror=$(mirror); }
  [[ -n $mirror ]] || skip "apt knows no mirror of Debian"
  say "fetching Debian's package herdtools7"
  mkdir -p "$work"/apt/{lists,cache/archives}/partial "$work/debs"
  echo "deb [signed-by=$keys] $mirror sid main" >"$work/apt/sources.list"
  cat >"$work/apt/conf" <<CONF
Dir::Etc::SourceList "$work/apt/sources.list";
Dir::Etc::SourceParts "-";
Dir::State::Lists "$work/apt/lists";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "root";
CONF
  (export APT_CONFIG=$work/apt/conf && cd "$work/debs" && apt-get -qq update &&
    apt-get -qq download herdtools7 libc6 libgmp10) >"$work/log" 2>&1 ||
    skip "cannot download herdtools7: $(tail -n 1 "$work/log")"
  mkdir "$work/root"
  for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$work/root" || fail "cannot unpack ${deb##*/}"
  done
  rm -rf "$1.new" "$1"
  mv "$work/root" "$1.new"
  mv "$1.new" "$1"
}

# herd ARGUMENTS...: runs herd7.
if command -v herd7 >/dev/null; then
  herd() { herd7 "$@"; }
else
  root=$cache/root
  [[ -d $root ]] || fetch "$root"
  libraries=$root/usr/lib/x86_64-linux-gnu
  # The loader of the unpacked C library, because the system's own may be too old for the program.
  herd() {
    "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$root/usr/bin/herd7" \
      -set-libdir "$root/usr/share/herdtools7/herd" "$@"
  }
fi
version=$(herd -version 2>"$work/log") || skip "herd7 does not start: $(tail -n 1 "$work/log")"
say "with herd7 $version"

# ask TEST: prints `no` if the outcome of a test is forbidden and nothing races, else `yes`.
ask() {
  local model=()
  [[ $(head -n 1 "$1") != C\ * ]] || model=(-model ci/litmus/rust.cat)
  herd "${model[@]}" "$1" >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "herd7 does not accept $1"; }
  if grep -q '^Flag race$' "$work/out"; then
    echo yes
  else
    case $(awk '$1 == "Observation" { print $3 }' "$work/out") in
    Never) echo no ;;
    Sometimes | Always) echo yes ;;
    *) cat "$work/out" >&2; fail "herd7 says nothing of $1" ;;
    esac
  fi
}

tests=("$@")
((${#tests[@]})) || mapfile -t tests < <(basename -s .litmus ci/litmus/*.litmus)
twins=0
for name in "${tests[@]}"; do
  test=ci/litmus/$name.litmus
  [[ -f $test ]] || fail "there is no test $name"
  answer=$(ask "$test")
  [[ $answer == no ]] || { cat "$work/out" >&2; fail "$name: the outcome is possible"; }
  shown=()
  while IFS= read -r twin; do
    names=${twin%%: *}
    sed -E "${twin#*: }" "$test" >"$work/twin.litmus"
    # A comment that has changed would hide that nothing else has.
    ! cmp -s <(sed '/^ *twin /d' "$test") <(sed '/^ *twin /d' "$work/twin.litmus") || fail "$name: the twin $names is the test itself"
    answer=$(ask "$work/twin.litmus")
    [[ $answer == yes ]] || { cat "$work/out" >&2; fail "$name: the outcome is forbidden without $names as well"; }
    shown+=("$names")
    ((twins += 1))
  done < <(sed -n 's/^ *twin //p' "$test")
  ((${#shown[@]})) || fail "$name: no twin, so the test shows nothing"
  say "ok: $name; possible without: $(IFS=';'; echo "${shown[*]}" | sed 's/;/; /g')"
done
say "ok: ${#tests[@]} tests and $twins twins"
