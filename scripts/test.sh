#!/usr/bin/env bash
# All tests: C++ (ctest), then Python and end to end (pytest), as many suites at once as there are cores, or as
# TRAPLINE_TEST_JOBS says. Says what this machine leaves out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
export TRAPLINE_BUILD_DIR=$PWD/$build
jobs=${TRAPLINE_TEST_JOBS:-$(nproc)}

.venv/bin/python -c 'import torch' 2>/dev/null || echo "trapline: test: torch is missing: the guard's tests are left out"
[[ -e /dev/nvidiactl ]] || echo "trapline: test: no NVIDIA GPU here: nothing below was run on one"

# Several programs run at once, each with a thread of OpenMP for every core: one that waits by spinning takes the core
# from another program, which made them take up to three times as much of the processor.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

# The programs that the tests start write no bytecode; each would compile the package anew, a sixth of its start.
.venv/bin/python -m compileall -q python

ctest --test-dir "$build" --output-on-failure -j "$(nproc)" --no-tests=error

# Each suite in a process of its own: the guard is a state of the process, and no suite may inherit another's.
# A suite is a folder with tests in it. The slowest go first, so that none of them is left over at the end.
slow=(tests/python/integrations tests/e2e tests/python/fault tests/python/host tests/cpu_cuda tests/skip)
mapfile -t suites < <(find tests -name 'test_*.py' -printf '%h\n' | sort -u | grep -vxF "$(printf '%s\n' "${slow[@]}")")
logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$logs"' EXIT

run() { # suite; its output comes in one piece
  local name=${1//\//-} status=0 start=$SECONDS child
  .venv/bin/python -m pytest -q -p no:cacheprovider "$1" >"$logs/$name.out" 2>&1 &
  child=$!
  trap 'kill "$child" 2>/dev/null' TERM # it must not outlive this script
  wait "$child" || status=$?
  # 5: everything of the suite was left out, which its conftest does where torch is missing.
  [[ $status == 0 || $status == 5 ]] || touch "$logs/$name.failed"
  { echo "== $1 ($((SECONDS - start)) s)"; cat "$logs/$name.out"; } >"$logs/$name.done"
  cat "$logs/$name.done"
}

failed=()
for suite in "${slow[@]}" "${suites[@]}"; do
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
  run "$suite" &
done
wait
for suite in "${slow[@]}" "${suites[@]}"; do
  [[ ! -e $logs/${suite//\//-}.failed ]] || failed+=("$suite")
done
if ((${#failed[@]})); then
  echo "trapline: test: failed: ${failed[*]}" >&2
  exit 1
fi
