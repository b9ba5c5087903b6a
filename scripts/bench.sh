#!/usr/bin/env bash
# Every figure is a ratio (or a difference) against a named peer, taken in the same run on the same machine.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
export TRAPLINE_BUILD_DIR=$PWD/$build
echo "== checks: SIMD scan against a plain read-sum of the same bytes and against the scalar reference"
"$build/bin/bench_checks"
echo "== log: trapline explain against grep -cF on the same files"
.venv/bin/python bench/log/bench_log.py
echo "== supervise: output passed through and read, against cat"
.venv/bin/python bench/supervise/passthrough.py "$build"
if .venv/bin/python -c 'import numpy' 2>/dev/null; then
  echo "== check: labels, weights and tables against NumPy, torch, pyarrow and DuckDB"
  .venv/bin/python bench/check/bench_check.py
fi
if .venv/bin/python -c 'import polars' 2>/dev/null; then
  echo "== check: one table as CSV, Parquet and JSON lines against polars and DuckDB"
  .venv/bin/python bench/check/bench_tables.py
fi
if .venv/bin/python -c 'import torch' 2>/dev/null; then
  echo "== guard: one operation"
  .venv/bin/python bench/guard/bench_ops.py
  echo "== guard: compiled for this torch, for any torch, in Python"
  .venv/bin/python bench/guard/bench_kinds.py
  echo "== guard: a training step"
  .venv/bin/python bench/guard/bench_train.py
  .venv/bin/python bench/guard/bench_watch.py
  echo "== guard: a training step compiled by Inductor"
  .venv/bin/python bench/guard/bench_compile.py
  echo "== guard: what a check on a device costs the host"
  .venv/bin/python bench/guard/bench_device.py
  echo "== requests: what the middleware adds to a request, against the whole of one"
  .venv/bin/python bench/supervise/bench_request.py
  echo "== --cpu: a training step on the device made of the CPU against plain CPU tensors"
  .venv/bin/python bench/cpu_cuda/bench_steps.py
else
  echo "trapline: bench: torch is missing: the guard's benchmarks are left out"
fi
