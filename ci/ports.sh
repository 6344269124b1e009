#!/usr/bin/env bash
# Tests the library crates (heist-deque and heist) on other processors: 32-bit x86, which this machine runs itself, and
# aarch64, which qemu runs. Checks that they compile for Windows and for macOS; nothing runs there. Everything is built with
# the oldest supported Rust, and with Debian's packages of std, of the linkers and of qemu, unpacked under target. Nothing is
# installed, and apt's own state stays as it is.
#
#   ci/ports.sh                  all of them
#   ci/ports.sh i686 windows     only these; or aarch64, or macos
#
# qemu orders memory as the processor below it does. So aarch64 shows that the library is portable, and nothing about weak
# memory: that is for loom (ci/models.sh) and herd7 (ci/litmus.sh).
#
# Exit code 77: skipped, and a line that says why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

oldest=1.85 # as in ci/msrv.sh, whose compiler, workspace and compiled dependencies this script shares

say() { echo "ports: $*"; }
skip() { say "skipped: $*"; exit 77; }
fail() { say "FAILED: $*" >&2; exit 1; }

ports=("$@")
((${#ports[@]})) || ports=(i686 aarch64 windows macos)

shared=$PWD/target/msrv
cache=$PWD/target/ports
mkdir -p "$shared" "$cache"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=ci/debian-rust.sh
source ci/debian-rust.sh
# shellcheck source=ci/oldest-workspace.sh
source ci/oldest-workspace.sh
needs_debian
debian_rust "$shared/root" "$oldest."
export RUSTC=$shared/root/rustc

# apt_beside ARCHITECTURE COMMAND...: runs a command with apt's lists and cache under target, for a foreign architecture too.
apt_beside() {
  local architecture=$1
  shift
  mkdir -p "$cache/apt/$architecture"/{lists,cache/archives}/partial
  cat >"$cache/apt/$architecture/conf" <<CONF
Dir::State::lists "$cache/apt/$architecture/lists";
Dir::Cache "$cache/apt/$architecture/cache";
APT::Architectures { "amd64"; "$architecture"; };
APT::Sandbox::User "root";
CONF
  APT_CONFIG=$cache/apt/$architecture/conf "$@"
}

# fetch ROOT ARCHITECTURE PACKAGE...: unpacks packages into the directory ROOT.
fetch() {
  local root=$1 architecture=$2 deb
  shift 2
  rm -rf "$work/debs"
  mkdir -p "$work/debs" "$root"
  (cd "$work/debs" && apt_beside "$architecture" apt-get -qq download "$@") >"$work/log" 2>&1 ||
    skip "cannot download the packages: $(tail -n 1 "$work/log")"
  for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$root" || fail "cannot unpack ${deb##*/}"
  done
}

# unpack PORT ARCHITECTURE: unpacks the std of a processor beside the one of the compiler, and its linker under $cache/PORT.
unpack() {
  local port=$1 architecture=$2 cross=$1-linux-gnu version gcc
  local root=$cache/$port std=$shared/root/usr/lib/rustlib/$port-unknown-linux-gnu
  [[ -x $root/linker && -d $std ]] && return
  say "fetching Debian's packages for $port"
  # Some lists may fail; what is needed is looked for below.
  apt_beside "$architecture" apt-get -qq update >/dev/null 2>&1 || true
  version=$(apt_beside "$architecture" apt-cache madison "libstd-rust-web-dev:$architecture" |
    awk -v prefix="$oldest." 'index($3, prefix) == 1 { print $3 }' | sort -rV | sed -n 1p)
  [[ -n $version ]] || skip "apt knows no libstd-rust-web-dev $oldest for $architecture"
  gcc=$(apt_beside "$architecture" first_dependency "gcc-$cross" "gcc-[0-9]+-$cross")
  [[ -n $gcc ]] || skip "apt knows no gcc-$cross"
  gcc=${gcc%-"$cross"}
  fetch "$shared/root" "$architecture" "libstd-rust-web-dev:$architecture=$version"

  rm -rf "$root"
  # What links a static program: the driver, the linker, and the libraries of C and of the compiler.
  fetch "$root" "$architecture" "$gcc-$cross" "binutils-$cross" "lib$gcc-dev-$architecture-cross" \
    "libgcc-s1-$architecture-cross" "libc6-$architecture-cross" "libc6-dev-$architecture-cross"
  [[ $port == i686 ]] || fetch "$root" "$architecture" qemu-user-static
  cat >"$root/linker" <<SH
#!/bin/sh
root=\$(dirname "\$0")
export LD_LIBRARY_PATH="\$root/usr/lib/x86_64-linux-gnu"
exec "\$root/usr/bin/$cross-$gcc" --sysroot="\$root" "\$@"
SH
  chmod +x "$root/linker"
}

# unpack_sources: unpacks the sources of std beside the compiler. Debian has no std for Windows and macOS in this version.
unpack_sources() {
  local version tools=$cache/windows
  if [[ ! -f $shared/root/usr/lib/rustlib/src/rust/library/std/Cargo.toml ]]; then
    say "fetching Debian's sources of std"
    version=$(newest_rustc "$oldest.")
    [[ -n $version ]] || skip "apt knows no rust-web-src $oldest"
    fetch "$shared/root" i386 "rust-web-src=$version"
  fi
  # For a library of imports, which std for Windows makes of its own sources.
  [[ $1 == macos || -d $tools ]] || fetch "$tools" i386 binutils-mingw-w64-x86-64
}

# use PORT: from here on, `run` builds and tests for that processor. Programs are static, so that they need no loader and no
# library of their processor where they run.
use() {
  target=$1-unknown-linux-gnu
  local name=${target^^}
  name=CARGO_TARGET_${name//-/_}
  export "${name}_LINKER=$cache/$1/linker" "${name}_RUSTFLAGS=-Ctarget-feature=+crt-static"
  [[ $1 == i686 ]] || export "${name}_RUNNER=$cache/$1/usr/bin/qemu-$1-static"
}

# Compile-fail tests are left out, as in ci/msrv.sh.
run() {
  local begun=$SECONDS
  cargo test --target "$target" "$@"
  say "$target: cargo test $*: $((SECONDS - begun))s"
}

# check TARGET: checks that the libraries compile for a system for which std is compiled from its sources, unoptimized.
check() {
  local begun=$SECONDS
  RUSTC_BOOTSTRAP=1 RUSTFLAGS="-D warnings -A unreachable-pub" PATH=$cache/windows/usr/bin:$PATH \
    cargo check -Zbuild-std=std,panic_unwind --target "$1" -p heist-deque -p heist
  say "$1: cargo check: $((SECONDS - begun))s"
}

for port in "${ports[@]}"; do
  case $port in
  i686) unpack i686 i386 ;;
  aarch64) unpack aarch64 arm64 ;;
  windows | macos) unpack_sources "$port" ;;
  *) fail "there is no $port here, only i686, aarch64, windows and macos" ;;
  esac
done

oldest_workspace "$shared/workspace"
cd "$shared/workspace"
export CARGO_TARGET_DIR=$shared/target CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0

for port in "${ports[@]}"; do
  case $port in
  windows) check x86_64-pc-windows-gnu ;;
  macos) check aarch64-apple-darwin ;;
  *)
    use "$port"
    # Left out: the race for the last item, which needs two processors that meet for millions of rounds, and the tests pool,
    # parallel and pipeline of heist, each of which this compiler takes minutes to generate code for.
    run -p heist-deque --test deque --test memory -- --skip misuse_does_not_compile
    run -p heist --lib --test fork --test engine -- --skip misuse_does_not_compile
    ;;
  esac
done
say "ok: ${ports[*]}"
