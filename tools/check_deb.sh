#!/usr/bin/env bash
# Installs the packages of `./dev deb` in a fresh Debian or Ubuntu and builds and runs the project of
# tests/consumer there, by CMake and by pkg-config. As root; needs debootstrap and the system's archive.
#   tools/check_deb.sh [SUITE] [MIRROR]     bookworm, and the mirror that this machine uses
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
suite=${1:-bookworm}
mirror=${2:-}
compgen -G 'build/package/*.deb' >/dev/null || { echo "no packages: run ./dev deb first" >&2; exit 1; }

# The libraries export their own names alone.
for library in build/package/rensa/*.so; do
  if names=$(nm -D --defined-only -C "$library" | cut -d' ' -f3- | grep -v 'rensa::'); then
    printf '%s exports what is not its own:\n%s\n' "$library" "$names" >&2
    exit 1
  fi
done

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"}
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
mkdir "$root/packages"
cp build/package/*.deb "$root/packages"
cp -r tests/consumer "$root/consumer"
chroot "$root" bash -euc '
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  # Programs that run need the first package alone.
  apt-get install -y -q --no-install-recommends /packages/librensa0*.deb
  apt-get install -y -q --no-install-recommends /packages/*.deb g++ cmake make pkg-config
  cmake -S /consumer -B /build -DCMAKE_BUILD_TYPE=Release
  cmake --build /build
  /build/arrays
  /build/network
  g++ -std=c++20 /consumer/arrays.cc $(pkg-config --cflags --libs rensa-array) -o /build/by_pkg_config
  /build/by_pkg_config
  ls /usr/share/doc/rensa'
echo "the packages install and work in $suite"
