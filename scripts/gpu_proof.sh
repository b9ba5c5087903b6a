#!/usr/bin/env bash
# Builds what the GPU proof needs and runs it: one command, no network, see scripts/gpu_proof.py.
#
# gpu_proof.sh [BUILD] [options of gpu_proof.py]
#
# The machine with the GPU often lacks the libraries that Trapline is built with. Then build on another machine
# (`make build bundle`), bring the whole checkout with its build folder, and run this: a build that is there and
# cannot be brought up to date is used as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
shift || true

has_torch() { "$1" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; }
python=${PYTHON:-}
if [[ -z $python ]]; then
  for candidate in .venv/bin/python python3; do
    if has_torch "$candidate"; then
      python=$candidate
      break
    fi
  done
fi
[[ -n $python ]] || {
  echo "trapline: gpu-proof: no Python here has a torch that sees a GPU: install torch with CUDA, or set PYTHON" >&2
  exit 2
}

targets=(trapline trapline_capi gpu_check_test)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
update() {
  command -v cmake >/dev/null || return 1
  [[ -f $build/CMakeCache.txt ]] || cmake -S . -B "$build" -DTRAPLINE_TESTS=ON -DTRAPLINE_PYTHON="$python" || return 1
  cmake --build "$build" -j "$(nproc)" --target "${targets[@]}"
}
if ! update >"$log" 2>&1; then
  if [[ -f $build/lib/libtrapline.so ]]; then
    echo "gpu-proof: $build cannot be brought up to date here ($(tail -1 "$log")): used as it is"
  else
    tail -5 "$log" >&2
    echo "trapline: gpu-proof: Trapline cannot be built here: a library is missing (see above): bring a build folder" \
      "made by \`make build bundle\` on another machine" >&2
    exit 2
  fi
fi
exec "$python" scripts/gpu_proof.py --build "$build" "$@"
