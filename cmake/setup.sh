# shellcheck shell=sh
# Sourced by ./run and ./test, in the project's root: installs what is missing by apt, and builds. Says what it does; quick the second time.
set -eu

packages="cmake g++ ninja-build pkg-config libdnnl-dev libhwy-dev libre2-dev nlohmann-json3-dev libcli11-dev libfmt-dev zlib1g-dev \
libgtest-dev dataset-fashion-mnist"
[ "$(uname -m)" != x86_64 ] || packages="$packages libxsmm-dev"
dev_packages="clang-14 libclang-rt-14-dev libomp-14-dev" # what preset dev is built with: sanitizers, libFuzzer, the OpenMP of that compiler

say() { printf '\n== %s\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 2; }

install_missing() {
  command -v dpkg-query >/dev/null || fail "this machine has no apt: install these or their like, then use cmake --preset release: $packages"
  missing=""
  for package in $packages; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  as_root=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "these packages are missing and there is no sudo: apt-get install$missing"
    as_root=sudo
  fi
  say "installing$missing"
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update
  # shellcheck disable=SC2086
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends $missing
}

# build PRESET [TARGET...]: configures and builds; one line when nothing changed.
build() {
  preset=$1
  shift
  if command -v ccache >/dev/null; then export ESPALIER_LAUNCHER=ccache; fi
  if [ ! -f "build/$preset/build.ninja" ]; then
    say "configuring build/$preset"
    cmake --preset "$preset"
  fi
  say "building build/$preset"
  if [ $# -gt 0 ]; then
    cmake --build --preset "$preset" --parallel "$(nproc)" --target "$@"
  else
    cmake --build --preset "$preset" --parallel "$(nproc)"
  fi
}
