#!/usr/bin/env bash
# The guard inside Python under a sanitizer: the adapter, libtrapline and the tests' device are instrumented; Python
# and PyTorch are not. What a sanitizer says about those alone is left out (tests/guard/tsan.supp), everything else
# fails the run.
#   scripts/sanitize_guard.sh thread|address [suite...]     default: tests/device tests/guard
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:?thread or address}
shift
case $kind in
  thread)
    preset=tsan flags=-fsanitize=thread library=libtsan.so
    ;;
  address)
    preset=asan flags=-fsanitize=address,undefined library=libasan.so
    ;;
  *)
    echo "trapline: sanitize: '$kind' is none: name thread or address" >&2
    exit 2
    ;;
esac
cmake --preset "$preset" >/dev/null
cmake --build "build-$preset" --target trapline trapline_capi fake_cuda trapline_kernel

said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
export TRAPLINE_BUILD_DIR=$PWD/build-$preset
export TRAPLINE_GUARD_CXXFLAGS="$flags -fno-sanitize-recover=undefined -g -fno-omit-frame-pointer"
export TSAN_OPTIONS="die_after_fork=0:suppressions=$PWD/tests/guard/tsan.supp:log_path=$said/tsan"
# Python frees little at its end; and a preloaded sanitizer comes before the modules that bring libstdc++ along.
export ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0:allocator_may_return_null=1:log_path=$said/asan"
export UBSAN_OPTIONS="print_stacktrace=1:log_path=$said/ubsan"
compiler=${CXX:-c++}
preload="$($compiler -print-file-name=$library) $($compiler -print-file-name=libstdc++.so)"

status=0
(($#)) || set -- tests/device tests/guard
for suite in "$@"; do
  echo "== $suite under the $kind sanitizer"
  LD_PRELOAD=$preload .venv/bin/python -m pytest -q -p no:cacheprovider "$suite" || status=1
done
if compgen -G "$said/*" >/dev/null; then
  cat "$said"/*
  status=1
fi
exit $status
