#!/usr/bin/env bash
# Makes src/cuda/kernels/check.ptx from check.cu. Needs nvcc; run it after a change of the sources and commit
# the result. tests/cuda/test_ptx.py fails while the text is older than its sources.
#   scripts/ptx.sh [--hash | --stdout]   --hash: print the hash of the sources only; --stdout: print the text
set -euo pipefail
cd "$(dirname "$0")/.."
out=src/cuda/kernels/check.ptx
sources=(src/checks/element.hpp src/checks/reason.hpp src/cuda/kernels/*.hpp src/cuda/kernels/check.cu)
hash=$(sed -e 's|//.*||' -e 's/[[:space:]]\+/ /g' "${sources[@]}" | tr -s ' \n' ' ' | sha256sum | cut -c1-64)
if [[ ${1:-} == --hash ]]; then
  echo "$hash"
  exit
fi
command -v nvcc >/dev/null || { echo "trapline: ptx: nvcc is missing: install the CUDA toolkit" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc -std=c++20 -Isrc -Iinclude -arch=compute_75 --expt-relaxed-constexpr -ptx src/cuda/kernels/check.cu -o "$work/raw.ptx"
# The compiler writes its own version and oldest processor, but the text uses nothing that PTX 6.0 and sm_50
# lack; with these every driver since CUDA 9 takes it. What newer compilers only hint at is left out.
{
  echo "// Made by scripts/ptx.sh: do not edit."
  echo "// sources: $hash"
  echo "// compiler: $(nvcc --version | grep -o 'release [0-9.]*, V[0-9.]*')"
  sed -e '/^[[:space:]]*\/\//d' -e '/used_bytes_mask/d' -e 's|//.*||' -e '/^[[:space:]]*$/d' \
    -e 's/[[:space:]]\+/ /g' -e 's/ $//' -e 's/^\.version .*/.version 6.0/' -e 's/^\.target .*/.target sm_50/' "$work/raw.ptx"
} >"$work/check.ptx"
# Proof: it assembles for every generation that this ptxas knows.
for arch in sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do
  ptxas -arch=$arch -o "$work/$arch" "$work/check.ptx"
done
if [[ ${1:-} == --stdout ]]; then
  cat "$work/check.ptx"
else
  cp "$work/check.ptx" "$out"
  echo "ptx: $out: $(wc -c <"$out") bytes, assembles for sm_75 to sm_120"
fi
