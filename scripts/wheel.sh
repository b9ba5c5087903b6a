#!/usr/bin/env bash
# Builds the wheel: dist/trapline-VERSION-py3-none-manylinux_2_28_ARCH.whl, for every Python from 3.9 and glibc from 2.28.
#
# wheel.sh [x86_64|aarch64] [--adapters DIR] [--deb]
#                        the machine (default: this one); prebuilt adapters to put in; also one Debian package of the
#                        same program for every Debian and Ubuntu with glibc 2.28
# TRAPLINE_WHEEL_CACHE   where the static libraries are kept (default ~/.cache/trapline-wheel)
#
# Needs Debian 12: GCC 12 compiles, PyPI's ziglang links against an old glibc (packaging/wheel/).
set -euo pipefail
cd "$(dirname "$0")/.."

arch=$(uname -m)
adapters=()
deb=""
while (($#)); do
  case $1 in
    --deb) deb=1 ;;
    --adapters) adapters=(--adapters "$2") && shift ;;
    *) arch=$1 ;;
  esac
  shift
done
cross=()
[[ $(uname -m) == "$arch" ]] || cross=(cross)
scripts/setup.sh wheel "${cross[@]}"
cache=${TRAPLINE_WHEEL_CACHE:-$HOME/.cache/trapline-wheel}
tools=$PWD/build-wheel-tools/bin
build=build-wheel-$arch
packaging/wheel/libraries.sh "$arch" "$cache"
echo "trapline: wheel: building for $arch"
mkdir -p "$build"
packaging/wheel/configure.sh "$arch" "$build" "$cache" "$tools/python" >"$build/configure.log" 2>&1 || {
  tail -20 "$build/configure.log" >&2
  echo "trapline: wheel: cannot configure: see $build/configure.log: mend it and run again" >&2
  exit 2
}
cmake --build "$build" -j "${JOBS:-$(nproc)}" | grep -vE '^\[[0-9]+/' || true
cmake --build "$build" -j "${JOBS:-$(nproc)}" >/dev/null
rm -rf "$build/installed"
cmake --install "$build" --prefix "$PWD/$build/installed" >/dev/null
version=$(sed -n 's/^project(trapline VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
"$tools/python" -m ziglang cc -target "$arch-linux-gnu.2.28" -O2 -s -Wall -DTRAPLINE_VERSION="\"$version\"" \
  packaging/wheel/launcher.c -o "$build/launcher"
[[ -f $build/installed/lib/trapline_kernel.abi3.so ]] || {
  echo "trapline: wheel: no trapline_kernel.abi3.so: there is no Python.h: run scripts/setup.sh wheel" >&2
  exit 2
}
wheel=$("$tools/python" packaging/wheel/pack.py --installed "$build/installed" --launcher "$build/launcher" \
  --licences "$cache/$arch/prefix/licences" --out dist --tag "py3-none-manylinux_2_28_$arch" "${adapters[@]}")
echo "trapline: wheel: $wheel"
run=()
[[ $(uname -m) == "$arch" ]] || run=(--run "qemu-$arch-static" -L "/usr/$arch-linux-gnu")
"$tools/python" packaging/wheel/inspect_wheel.py "$wheel" "${run[@]}"
if [[ -x $tools/auditwheel ]]; then
  "$tools/auditwheel" show "$wheel" | sed -n 's/.*\("manylinux[^"]*"\).*/  auditwheel: consistent with \1/p'
fi
if [[ $deb ]]; then
  (cd "$build" && cpack -G DEB >/dev/null)
  rm -rf dist/_CPack_Packages
  for package in dist/trapline_"$version"_*.deb; do echo "trapline: wheel: $package"; done
fi
