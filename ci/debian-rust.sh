# Sourced by ci/msrv.sh and ci/tsan.sh: a Rust compiler from Debian's packages, unpacked beside the system. Nothing is
# installed.
#
# The caller defines `say`, `skip` (ends the script with exit code 77), `fail`, and `work`, a temporary directory that it
# removes when it ends.
# shellcheck shell=bash disable=SC2154

# needs_debian: skips where the packages cannot be used.
needs_debian() {
  [[ $(uname -sm) == "Linux x86_64" ]] || skip "needs Linux on x86_64"
  local tool
  for tool in apt-get apt-cache dpkg-deb; do
    command -v "$tool" >/dev/null || skip "no $tool, not a Debian system"
  done
}

# first_dependency PACKAGE PATTERN: the first package on which PACKAGE depends and whose name matches PATTERN.
first_dependency() {
  { apt-cache depends "$1" 2>/dev/null || true; } | sed -nE "s/^ *Depends: ($2)\$/\1/p;T;q"
}

# newest_rustc PREFIX: the newest version of rustc-web that begins with PREFIX, as apt writes it.
newest_rustc() {
  { apt-cache madison rustc-web 2>/dev/null || true; } |
    awk -v prefix="$1" 'index($3, prefix) == 1 { print $3 }' | sort -rV | sed -n 1p
}

# debian_rust ROOT PREFIX [PACKAGE...]: unpacks the newest rustc-web whose version begins with PREFIX ("" for any) in the
# directory ROOT, with its std and its LLVM, and every PACKAGE as well. In the name of a PACKAGE, LLVM stands for the major
# version of the compiler's LLVM. Does nothing if ROOT has a compiler already.
#
# ROOT/rustc and ROOT/rustdoc start the unpacked programs with the shared libraries that belong to them.
debian_rust() {
  local root=$1 prefix=$2
  shift 2
  [[ -x $root/rustc ]] || fetch_rust "$root" "$prefix" "$@"
  "$root/rustc" --version >/dev/null 2>"$work/log" ||
    skip "the unpacked compiler does not start: $(tail -n 1 "$work/log")"
}

fetch_rust() {
  local root=$1 prefix=$2
  shift 2
  say "fetching Debian's compiler packages"
  # May fail without the rights or the network; old lists can be good enough.
  apt-get -qq update >/dev/null 2>&1 || true

  local version std llvm
  version=$(newest_rustc "$prefix")
  [[ -n $version ]] || skip "apt knows no package rustc-web${prefix:+ of version $prefix}"
  std=$(first_dependency "libstd-rust-web-dev=$version" 'libstd-rust-web-[0-9.]+')
  [[ -n $std ]] || skip "apt knows no libstd-rust-web-dev of version $version"
  llvm=$(first_dependency "$std" 'libllvm[0-9]+')
  [[ -n $llvm ]] || skip "cannot tell which LLVM $std uses"
  local package wanted=("rustc-web=$version" "libstd-rust-web-dev=$version" "$std" "$llvm")
  for package in "$@"; do
    [[ $package != rust-web-* ]] || package+="=$version"
    wanted+=("${package//LLVM/${llvm#libllvm}}")
  done

  # Shared libraries that LLVM needs and this machine lacks; no C library, and nothing for 32 bits.
  local plan extra
  plan=$(apt-get -s --no-install-recommends install "${wanted[@]}" 2>&1) || skip "apt cannot resolve ${wanted[*]}"
  mapfile -t extra < <(awk -v wanted=" ${wanted[*]%%=*} " '$1 == "Inst" && $2 ~ /^lib/ &&
    $2 !~ /^(libc6|libc-|libc-dev|lib32|libgcc|libstdc)/ && !index(wanted, " " $2 " ") { print $2 }' <<<"$plan")

  mkdir "$work/debs" "$work/root"
  (cd "$work/debs" && apt-get -qq -o APT::Sandbox::User=root download "${wanted[@]}" "${extra[@]}") >"$work/log" 2>&1 ||
    skip "cannot download the packages: $(tail -n 1 "$work/log")"
  local deb
  for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$work/root" || fail "cannot unpack ${deb##*/}"
  done
  rm -rf "$work/debs" "$work"/root/usr/src/*/{compiler,src} # of the sources, library/ is enough

  local program
  for program in rustc rustdoc; do
    cat >"$work/root/$program" <<'SH'
#!/bin/sh
root=$(dirname "$0")
export LD_LIBRARY_PATH="$root/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$root/usr/bin/$(basename "$0")" "$@"
SH
    chmod +x "$work/root/$program"
  done
  rm -rf "$root.new" "$root"
  mv "$work/root" "$root.new" # perhaps from another file system,
  mv "$root.new" "$root"      # so this is the step that makes it count
}
