#!/usr/bin/env bash
# test_torches.sh BUILD [VERSION=PYTHON...]: the guard for any torch, and the compiled one where it is brought along,
# over other releases of PyTorch: the conformance table, tests/guard, and the examples. 1 GB for each release; CUDA is
# neither installed nor used (tests/torches/torch_without_cuda.py).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
build=$(realpath "${1:-build}")
shift || true
pairs=("$@")
((${#pairs[@]})) || pairs=(2.5.1=python3 2.9.1=python3 2.10.0=python3 2.15.0=python3)
export TRAPLINE_BUILD_DIR=$build PYTHONDONTWRITEBYTECODE=1 TRAPLINE_BUILD=never
folder=${TRAPLINE_TORCHES:-$HOME/.cache/trapline-torches}
mkdir -p "$folder"
failed=0
run() { # title, folder, command...
  local title=$1 where=$2
  shift 2
  echo "== $title"
  (cd "$where" && timeout 1200 "$@") || failed=1
}
for pair in "${pairs[@]}"; do
  version=${pair%%=*} python=${pair#*=}
  there=$folder/$version-python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  "$python" tests/torches/torch_without_cuda.py "$version" "$there" "$python" || {
    echo "trapline: test_torches: torch $version could not be made importable: see above" >&2
    exit 2
  }
  pytest=("$there/bin/python" -m pytest -q -p no:cacheprovider)
  run "torch $version: the conformance table" tests/python/boot "${pytest[@]}" test_conformance.py
  TRAPLINE_TEST_ADAPTER=kernel run "torch $version: tests/guard, the guard for any torch" tests/guard "${pytest[@]}" .
  TRAPLINE_TEST_ADAPTER=kernel run "torch $version: the examples" tests/e2e "${pytest[@]}" test_e2e_examples.py
done
exit $failed
