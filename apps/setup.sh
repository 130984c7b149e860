#!/usr/bin/env bash
# Brings a machine to the point where weft configures: compiler, MPI, UCX, BLIS, small libraries, Kokkos.
# Prints what it does on stderr and, last, the Kokkos prefix on stdout. Safe to repeat; does nothing
# that is done already. Without root it installs nothing and says what is missing.
#
#   KOKKOS=$(apps/setup.sh) && cmake --preset release -DKokkos_ROOT="$KOKKOS"
#
# Kokkos is taken, in this order: Kokkos_ROOT from the environment; a packaged Kokkos that has
# OpenMP; one built earlier into the cache folder (WEFT_CACHE, default ~/.cache/weft); else Debian's
# own source package is built there once, with Serial and OpenMP.
set -euo pipefail

cache=${WEFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weft}
packages=(g++ cmake ninja-build pkg-config libopenmpi-dev openmpi-bin libucx-dev libblis-serial-dev
  libtomlplusplus-dev libcli11-dev libfmt-dev nlohmann-json3-dev libxxhash-dev
  libhdf5-dev hdf5-tools catch2 xz-utils)
source_packages=(dpkg-dev ca-certificates)

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_install() {
  command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

# Installs those of the named Debian packages that are not there yet.
install_debian() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return 0
  can_install || die "missing Debian packages: ${missing[*]}. Install them (or load your site's modules and set WEFT_SKIP_PACKAGES=1)."
  say "installing ${missing[*]}"
  as_root apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# Succeeds where the Kokkos under prefix $1 (empty: the default places) configures and has OpenMP.
kokkos_has_openmp() {
  local probe; probe=$(mktemp -d)
  cat >"$probe/CMakeLists.txt" <<'PROBE'
cmake_minimum_required(VERSION 3.25)
project(probe CXX)
find_package(Kokkos REQUIRED CONFIG)
if(NOT "OPENMP" IN_LIST Kokkos_DEVICES OR "CUDA" IN_LIST Kokkos_DEVICES)
  message(FATAL_ERROR "the release preset wants OpenMP and no CUDA; this Kokkos has ${Kokkos_DEVICES}")
endif()
add_executable(probe probe.cpp)
target_link_libraries(probe Kokkos::kokkos)
PROBE
  echo '#include <Kokkos_Core.hpp>
int main(int argc, char** argv) { Kokkos::ScopeGuard guard(argc, argv); }' >"$probe/probe.cpp"
  local options=(-DCMAKE_BUILD_TYPE=Release); [ -n "$1" ] && options+=("-DKokkos_ROOT=$1")
  local ok=1
  cmake -S "$probe" -B "$probe/build" "${options[@]}" >"$probe/log" 2>&1 && ok=0
  rm -rf "$probe"
  return $ok
}

# Builds Debian's Kokkos (part of its trilinos source package) into $1.
build_kokkos() {
  local prefix=$1 work
  can_install || command -v dpkg-source >/dev/null || die "no Kokkos with OpenMP found. Set Kokkos_ROOT to one (module load kokkos), version 3.4 or newer."
  install_debian "${source_packages[@]}"
  mkdir -p "$cache"; work=$(mktemp -d "$cache/kokkos-build.XXXXXX")
  trap "rm -rf '$work'" EXIT

  # A deb-src line and package lists of its own, so that the machine's configuration stays as it is.
  local release; release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  local mirror; mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 -i 'debian' | sed 's#/*$##')
  mkdir -p "$work/lists/partial" "$work/source"
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb-src [signed-by=$keyring] $mirror $release main" >"$work/sources.list"
  local apt=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o APT::Sandbox::User=root)
  say "fetching Debian's source package of Kokkos (trilinos, 166 MB)"
  apt-get "${apt[@]}" update -qq >&2
  (cd "$work/source" && apt-get "${apt[@]}" source -qq --download-only trilinos >&2)

  say "unpacking packages/kokkos"
  local archive; archive=$(ls "$work"/source/trilinos_*.orig.tar.* | head -1)
  tar -xf "$archive" -C "$work" --wildcards '*/packages/kokkos/*'
  local kokkos; kokkos=$(ls -d "$work"/*/packages/kokkos)

  say "building Kokkos with Serial and OpenMP into $prefix"
  # Kokkos 3.4 knows no compiler default past C++17; weft compiles against it as C++20.
  cmake -S "$kokkos" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix.partial" \
    -DCMAKE_CXX_STANDARD=17 -DCMAKE_CXX_EXTENSIONS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_OPENMP=ON -DKokkos_ENABLE_TESTS=OFF -Wno-dev >"$work/log" 2>&1 || { cat "$work/log" >&2; die "Kokkos does not configure"; }
  cmake --build "$work/build" >>"$work/log" 2>&1 || { tail -40 "$work/log" >&2; die "Kokkos does not build"; }
  cmake --install "$work/build" >>"$work/log" 2>&1
  rm -rf "$prefix"; mv "$prefix.partial" "$prefix"
}

[ -n "${WEFT_SKIP_PACKAGES:-}" ] || { command -v dpkg-query >/dev/null && install_debian "${packages[@]}"; }

if [ -n "${Kokkos_ROOT:-}" ]; then
  say "Kokkos from Kokkos_ROOT: $Kokkos_ROOT"
  printf '%s\n' "$Kokkos_ROOT"
elif kokkos_has_openmp ""; then
  say "packaged Kokkos"
  echo
else
  prefix=$cache/kokkos
  kokkos_has_openmp "$prefix" || build_kokkos "$prefix"
  say "Kokkos in $prefix"
  printf '%s\n' "$prefix"
fi
