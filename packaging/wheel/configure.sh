#!/usr/bin/env bash
# Configures a build whose products run on glibc 2.28 and need no other library.
#
# configure.sh x86_64|aarch64 BUILD CACHE PYTHON    CACHE is that of libraries.sh; PYTHON has ziglang
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
arch=$1 build=$2 python=$4
cache=$(cd "$3" && pwd)
prefix=$cache/$arch/prefix
mkdir -p "$build"
build=$(cd "$build" && pwd)
cc=gcc cxx=g++
cross=()
if [[ $(uname -m) != "$arch" ]]; then
  cc=$arch-linux-gnu-gcc cxx=$arch-linux-gnu-g++
  # Headers and the libraries' descriptions come from the packages of that processor alone.
  export PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig
  cross=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$arch" -DCMAKE_FIND_ROOT_PATH="$prefix;$cache/$arch/root/usr"
    -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY
    -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER)
fi
# What reads Parquet and Arrow is linked with the libraries inside pyarrow, which the extra `arrow` brings: its version.
pyarrow=$(sed -n 's/^PYARROW = "\(.*\)"$/\1/p' "$here/pack.py")
if [[ ! -d $prefix/../pyarrow-$pyarrow ]]; then
  rm -rf "$build/pyarrow"
  "$python" -m pip download -q --no-deps --only-binary=:all: --platform "manylinux_2_28_$arch" --python-version 3.11 \
    -d "$build/pyarrow" "pyarrow==$pyarrow"
  "$python" -m zipfile -e "$build"/pyarrow/pyarrow-*.whl "$build/pyarrow"
  mv "$build/pyarrow/pyarrow" "$prefix/../pyarrow-$pyarrow"
fi
"$cc" -O2 -fPIC -c "$here/old_glibc.c" -o "$build/old_glibc.o"
cat >"$build/link.sh" <<END
#!/usr/bin/env bash
export TRAPLINE_WHEEL_PYTHON="$python" TRAPLINE_WHEEL_ARCH=$arch TRAPLINE_WHEEL_CXX=$cxx
export TRAPLINE_WHEEL_GLUE="$build/old_glibc.o"
exec "$here/link.sh" "\$@"
END
chmod +x "$build/link.sh"
# The flags of `make build`, so that ccache shares the objects with it; the linker strips what is for a debugger.
PKG_CONFIG_PATH=$prefix/lib/pkgconfig cmake -S "$here/../.." -B "$build" -G Ninja \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -g1 -DNDEBUG" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PROJECT_INCLUDE="$here/link.cmake" \
  -DTRAPLINE_WHEEL_LINK="$build/link.sh" -DCMAKE_SKIP_RPATH=ON -DCMAKE_PREFIX_PATH="$prefix" -DTRAPLINE_TESTS=OFF \
  -DCMAKE_INSTALL_LIBDIR=lib -DTRAPLINE_PYTHON=none -DCMAKE_DISABLE_FIND_PACKAGE_Arrow=ON -DTRAPLINE_WITH_HDF5=OFF -DTRAPLINE_PYARROW="$prefix/../pyarrow-$pyarrow" -DBACKWARD_INCLUDE=OFF \
  "${cross[@]}"
