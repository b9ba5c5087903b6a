#!/usr/bin/env bash
# Links GCC's objects against glibc 2.28 and GCC's own C++ runtime, statically; packaging/wheel/link.cmake calls it.
#
# link.sh ARGUMENT...     of a link by GCC
# TRAPLINE_WHEEL_PYTHON   a Python that has ziglang, which brings the linker and the stubs of old glibcs
# TRAPLINE_WHEEL_ARCH     x86_64 or aarch64
# TRAPLINE_WHEEL_CXX      the compiler whose runtime is linked
# TRAPLINE_WHEEL_GLUE     old_glibc.o
set -euo pipefail
arguments=()
exports=""
shared=""
target=""
for argument in "$@"; do
  case $argument in
    -Wl,--exclude-libs,ALL) ;; # lld does not know it; the version script alone does the work
    -Wl,--version-script=*) exports=$argument && arguments+=("$argument") ;;
    -Wl,-rpath,*) ;; # of the build tree, or the program's ../lib, which a wheel has not
    -Wl,--dependency-file=*) ;;
    -shared) shared=1 && arguments+=("$argument") ;;
    *.so) target=$argument && arguments+=("$argument") ;;
    *) arguments+=("$argument") ;;
  esac
done
# The runtime's symbols are visible in its archives: without a list they would meet another copy in the user's process.
if [[ $shared && ! $exports ]]; then
  here=$(dirname "${BASH_SOURCE[0]}")
  case $(basename "$target") in
    *.abi3.so) arguments+=("-Wl,--version-script=$here/module.map") ;;
    libfake_cuda.so) arguments+=("-Wl,--version-script=$here/driver.map") ;;
    *) arguments+=("-Wl,--version-script=$here/../../src/capi/exports.map") ;;
  esac
fi
# pyarrow lies beside the package whose _lib this is in.
# shellcheck disable=SC2016
[[ $(basename "$target") != libtrapline_arrow.so ]] || arguments+=('-Wl,-z,origin' '-Wl,-rpath,$ORIGIN/../../pyarrow')
runtime=()
for file in libstdc++.a libgcc_eh.a libgcc.a; do runtime+=("$("$TRAPLINE_WHEEL_CXX" -print-file-name="$file")"); done
exec "$TRAPLINE_WHEEL_PYTHON" -m ziglang cc -target "$TRAPLINE_WHEEL_ARCH-linux-gnu.2.28" -s -Wl,--gc-sections \
  -Wl,-z,relro -Wl,-z,now "${arguments[@]}" "$TRAPLINE_WHEEL_GLUE" -Wl,--start-group "${runtime[@]}" -Wl,--end-group -lm
