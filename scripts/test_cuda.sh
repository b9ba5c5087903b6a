#!/usr/bin/env bash
# All that can run under PyTorch's unmodified CUDA build without a GPU: docs/cuda-build.md. Opt-in and long.
#
# test_cuda.sh BUILD [SUITE...]     SUITE: proof, device, property, or a file of tests/fakecuda
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:-build}" && pwd)
shift || true
python=$PWD/.venv-cuda/bin/python
standin=$build/fakecuda
export TRAPLINE_BUILD_DIR=$build

"$python" tests/fakecuda/build.py --out "$standin"
PYTHONPATH=python "$python" -m trapline._build --out "$build/adapters" >/dev/null # the guard, for this torch

over() { nice -n 5 tests/fakecuda/with_cuda.sh "$standin" "$python" "$@"; }
run() {
  case $1 in
    proof) over scripts/gpu_proof.py --build "$build" --small --limit 600 --out "$build/cuda-proof" ;;
    device) over -m pytest -q -p no:cacheprovider tests/device --ignore tests/device/test_property.py \
      --ignore tests/device/test_proof.py ;; # of --cpu; the proof itself is run above
    property) over -m pytest -q -p no:cacheprovider tests/device/test_property.py ;;
    *) over -m pytest -q -p no:cacheprovider "$1" ;;
  esac
}
suites=("$@")
((${#suites[@]})) || suites=(tests/fakecuda/test_torch_cuda.py tests/fakecuda/test_library.py proof device property
  tests/fakecuda/test_examples.py tests/fakecuda/test_training.py)
failed=()
for suite in "${suites[@]}"; do
  echo "== $suite"
  start=$SECONDS
  run "$suite" || failed+=("$suite")
  echo "== $suite: $((SECONDS - start)) s"
done
if ((${#failed[@]})); then
  echo "trapline: test-cuda: failed: ${failed[*]}" >&2
  exit 1
fi
