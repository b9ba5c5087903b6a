#!/usr/bin/env bash
# The libraries that the wheel's program links, as position-independent archives: built once, then kept.
#
# libraries.sh x86_64|aarch64 CACHE     makes CACHE/ARCH/prefix (lib/*.a, include/, lib/pkgconfig/*.pc, licences/)
#
# Debian has no archive of highway, simdjson and prometheus-cpp, and its libre2.a does not fit into a shared library:
# these are built from Debian's source packages, which carry its security fixes. bzip2, xz, zstd, png, sqlite3 and zlib are
# Debian's own archives, from the packages of ARCH. Nothing is installed on this machine.
set -euo pipefail
arch=$1
cache=$(mkdir -p "$2" && cd "$2" && pwd)
fail() { # what, why, what to do
  echo "trapline: wheel: $1: $2: $3" >&2
  exit 2
}
case $arch in
  x86_64) debian=amd64 triplet=x86_64-linux-gnu ;;
  aarch64) debian=arm64 triplet=aarch64-linux-gnu ;;
  *) fail "no wheel for '$arch'" "only x86_64 and aarch64 are known" "name one of them" ;;
esac

# Package, and the sha256 of its upstream archive: another upstream version is to be seen and tried by somebody.
sources="
re2 3bc61251da3b0b97be40a8a127818c517c62516e4eda11fc901d29496663df54
highway 566fc77315878473d9a6bd815f7de78c73734acdcb745c3dde8579560ac5440e
simdjson 156b1bc5eb0561b2bd166b46d191fd3d95a3e709cc63761477d3b7aec2b6e9ed
prometheus-cpp 593e028d401d3298eada804d252bc38d8cab3ea1c9e88bcd72095281f85e6d16
cpp-httplib 8b1a5df569003b6a4f24c68489bbda5c64aec94697bdc9ebba5d79408b2ae7eb
"
# Archives of Debian's that are linked as they are, and headers that are the same on every machine.
binaries="libbz2-dev liblzma-dev libzstd-dev libpng-dev libsqlite3-dev zlib1g-dev"
headers="libfmt-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev"
# What Debian's source of re2 makes its tables from, and a file that libfmt-dev's description wants to see.
others="unicode-data python3-six libfmt9"

prefix=$cache/$arch/prefix
wanted=$(sha256sum <"${BASH_SOURCE[0]}")
if [[ -f $prefix/.done && $(<"$prefix/.done") == "$wanted" ]]; then exit 0; fi
work=$cache/$arch/work
rm -rf "$prefix" "$work"
mkdir -p "$prefix/lib/pkgconfig" "$prefix/licences" "$work"/{lists/partial,archives/partial,debs}

# apt with lists of its own, for one machine, from where this one has its packages: what is installed plays no part.
keys="signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
# shellcheck disable=SC2016
apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' | sort -u |
  while read -r uri release component; do
    [[ $release =~ ^bookworm(-updates|-security)?$ && $component == main ]] || continue
    printf 'deb [arch=%s %s] %s %s main\n' $debian "$keys" "$uri" "$release"
    printf 'deb-src [%s] %s %s main\n' "$keys" "$uri" "$release"
  done >"$work/sources.list"
[[ -s $work/sources.list ]] || fail "no packages of Debian 12" "apt knows no such source here" "build on Debian 12"
touch "$work/status"
own_apt() {
  apt-get -q -o APT::Architecture=$debian -o APT::Architectures=$debian -o Dir::Etc::sourcelist="$work/sources.list" \
    -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status" \
    -o Dir::Cache="$work" -o Dir::Cache::archives="$work/archives" -o APT::Sandbox::User=root "$@"
}
own_apt update >"$work/apt.log" 2>&1 || fail "cannot read Debian's package lists" "see $work/apt.log" "check the network"

root=$cache/$arch/root
rm -rf "$root"
mkdir -p "$root"
# shellcheck disable=SC2086
(cd "$work/debs" && own_apt download $binaries $headers $others >>"$work/apt.log" 2>&1) ||
  fail "cannot fetch Debian's packages" "see $work/apt.log" "check the network"
for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
for library in bz2 lzma zstd png16 sqlite3 z; do
  [[ -f $root/usr/lib/$triplet/lib$library.a ]] || fail "no lib$library.a" "Debian's package has none" "see $root"
done

options=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF
  "-DCMAKE_C_FLAGS=-ffunction-sections -fdata-sections" "-DCMAKE_CXX_FLAGS=-ffunction-sections -fdata-sections"
  -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib)
cxx=g++
ar="ar"
if [[ $(uname -m) != "$arch" ]]; then
  cxx=$triplet-g++
  ar=$triplet-ar
  options+=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$arch" -DCMAKE_C_COMPILER="$triplet-gcc"
    -DCMAKE_CXX_COMPILER="$triplet-g++")
fi
build() { # package, option...
  local package=$1
  shift
  echo "trapline: wheel: building $package for $arch"
  { cmake -S "$work/$package" -B "$work/build-$package" "${options[@]}" "$@" &&
    cmake --build "$work/build-$package" -j "${JOBS:-$(nproc)}" &&
    cmake --install "$work/build-$package"; } >"$work/$package.log" 2>&1 ||
    fail "cannot build $package" "see $work/$package.log" "mend it and run again"
}
while read -r package sum; do
  [[ $package ]] || continue
  (cd "$work" && own_apt source "$package" >>"$work/apt.log" 2>&1) ||
    fail "cannot fetch the source of $package" "see $work/apt.log" "check the network"
  archive=$(ls "$work/${package}"_*.orig.tar.*)
  got=$(sha256sum <"$archive")
  [[ ${got%% *} == "$sum" ]] || fail "$package has changed upstream" "its sha256 is ${got%% *}" \
    "look at it, then write that into ${BASH_SOURCE[0]}"
  mv "$work/$package"-*/ "$work/$package" # CMake stumbles over the + of 20220601+dfsg
done <<<"$sources"
sed -i "s|/usr/share/unicode|$root&|" "$work/re2/re2/unicode.py"
echo "trapline: wheel: building re2 for $arch"
PYTHONPATH=$root/usr/lib/python3/dist-packages make -C "$work/re2" REBUILD_TABLES=1 -j "${JOBS:-$(nproc)}" CXX="$cxx" AR="$ar" \
  CXXFLAGS="-O3 -DNDEBUG -pthread -fPIC -ffunction-sections" prefix="$prefix" \
  static-install >"$work/re2.log" 2>&1 ||
  fail "cannot build re2" "see $work/re2.log" "mend it and run again"
build highway -DBUILD_TESTING=OFF -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF
build simdjson
build prometheus-cpp -DENABLE_PULL=OFF -DENABLE_PUSH=OFF -DENABLE_COMPRESSION=OFF -DENABLE_TESTING=OFF \
  -DGENERATE_PKGCONFIG=OFF
# Header-only, and without TLS: OpenSSL would be 5 MB, and the parts of Trapline that speak HTTP speak it in the clear.
build cpp-httplib -DHTTPLIB_COMPILE=OFF -DHTTPLIB_USE_OPENSSL_IF_AVAILABLE=OFF \
  -DHTTPLIB_USE_BROTLI_IF_AVAILABLE=OFF -DHTTPLIB_USE_ZLIB_IF_AVAILABLE=OFF

describe() { # name, link flags
  printf 'Name: %s\nDescription: %s of the wheel\nVersion: 0\nLibs: %s\nCflags: -I%s/include\n' \
    "$1" "$1" "$2" "$prefix" >"$prefix/lib/pkgconfig/$1.pc"
}
describe re2 "-L$prefix/lib -lre2"
describe libhwy "-L$prefix/lib -lhwy"
describe cpp-httplib ""
cp "$root/usr/lib/$triplet/libzstd.a" "$root/usr/lib/$triplet/libpng16.a" "$prefix/lib"
cp "$root/usr/lib/$triplet"/lib{bz2,lzma,sqlite3,z}.a "$prefix/lib"
cp -rL "$root"/usr/include/{bzlib.h,lzma.h,lzma,zstd.h,zdict.h,zstd_errors.h,png.h,pngconf.h,pnglibconf.h,sqlite3.h,zlib.h} \
  "$prefix/include"
cp "$root/usr/include/$triplet/zconf.h" "$prefix/include" 2>/dev/null || cp "$root/usr/include/zconf.h" "$prefix/include"
describe libzstd "-L$prefix/lib -lzstd"

# The licences, as Debian's packages state them.
for package in re2 highway simdjson prometheus-cpp cpp-httplib; do
  cp "$work/$package/debian/copyright" "$prefix/licences/$package.txt"
done
for package in $binaries $headers; do # there, libbz2-dev's and liblzma-dev's are links into packages not unpacked here
  cp "/usr/share/doc/$package/copyright" "$prefix/licences/${package%-dev}.txt" ||
    fail "no licence of $package" "this machine lacks the package" "run scripts/setup.sh wheel"
done
gcc_licence=(/usr/share/doc/gcc-12-base/copyright /usr/share/doc/libstdc++6/copyright)
for file in "${gcc_licence[@]}"; do
  [[ ! -f $file ]] || { cp "$file" "$prefix/licences/gcc-runtime.txt" && break; }
done
echo "$wanted" >"$prefix/.done"
rm -rf "$work"
