#!/usr/bin/env bash
# The main job on a real failing program: an image classifier whose head has one output too few.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=${1:-build}
if ! .venv/bin/python -c 'import torch' 2>/dev/null; then
  echo "trapline: demo: torch is missing in .venv: run make demo without TRAPLINE_NO_TORCH" >&2
  exit 2
fi
command=("$build/bin/trapline" run -- .venv/bin/python examples/image_classifier_head.py)
printf '\n$ %s\n' "${command[*]}"
"${command[@]}"
status=$?
echo
echo "The program's own exit code: $status. Now the same program with its head widened:"
command+=(--fixed)
printf '\n$ %s\n' "${command[*]}"
"${command[@]}"
