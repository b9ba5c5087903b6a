#!/usr/bin/env bash
# All tests: C++ (ctest), then Python and end to end (pytest). Says what this machine leaves out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
export TRAPLINE_BUILD_DIR=$PWD/$build

.venv/bin/python -c 'import torch' 2>/dev/null || echo "trapline: test: torch is missing: the guard's tests are left out"
[[ -e /dev/nvidiactl ]] || echo "trapline: test: no NVIDIA GPU here: nothing below was run on one"

ctest --test-dir "$build" --output-on-failure -j "$(nproc)" --no-tests=error

# Each suite in a process of its own: the guard is a state of the process, and no suite may inherit another's.
# A suite is a folder with tests in it.
failed=()
while read -r -u 3 suite; do
  echo "== $suite"
  status=0
  .venv/bin/python -m pytest -q -p no:cacheprovider "$suite" || status=$?
  # 5: everything of the suite was left out, which its conftest does where torch is missing.
  [[ $status == 0 || $status == 5 ]] || failed+=("$suite")
done 3< <(find tests -name 'test_*.py' -printf '%h\n' | sort -u)
if ((${#failed[@]})); then
  echo "trapline: test: failed: ${failed[*]}" >&2
  exit 1
fi
