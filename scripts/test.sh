#!/usr/bin/env bash
# All tests: C++ (ctest), then Python and end to end (pytest). Says what this machine leaves out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
export TRAPLINE_BUILD_DIR=$PWD/$build

.venv/bin/python -c 'import torch' 2>/dev/null || echo "trapline: test: torch is missing: the guard's tests are left out"
[[ -e /dev/nvidiactl ]] || echo "trapline: test: no NVIDIA GPU here: nothing below was run on one"

ctest --test-dir "$build" --output-on-failure -j "$(nproc)" --no-tests=error
.venv/bin/python -m pytest -q -p no:cacheprovider tests
