#!/usr/bin/env bash
# Copies the distribution's libraries that Trapline links into BUILD/lib, where its programs look first, so that the
# build folder runs on a machine that lacks them (same architecture, glibc at least as new).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
programs=("$build/lib/libtrapline.so" "$build/bin/trapline")
for optional in "$build/bin/gpu_check_test" "$build/lib/libtrapline_http.so"; do
  [[ -f $optional ]] && programs+=("$optional")
done
# glibc and the compiler's runtime stay with the machine: torch brings no other either.
ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux[^/]*|libtrapline)\.so' |
  while read -r library; do
    [[ $(dirname "$library") -ef $build/lib ]] || cp -L "$library" "$build/lib/"
  done
ls "$build/lib"
