#!/usr/bin/env bash
# Builds the guard's adapters that a wheel brings along, into BUILD/prebuilt: one for each release of PyTorch in
# scripts/torch_releases.txt, which fits every Python, and for each Python here a small one that reads its frames.
#
# adapters.sh [--out DIR] [--no-frames] [RELEASE...]    all, or these releases only
# TRAPLINE_ADAPTERS_CACHE    where the headers are kept (default ~/.cache/trapline-adapters)
# TRAPLINE_BUILD_DIR         the build tree (default build), which has libtrapline.so
#
# PyTorch is not installed: of its wheels the headers and the names of the libraries' symbols are kept.
set -euo pipefail
cd "$(dirname "$0")/.."
exec nice -n 10 "${PYTHON:-.venv/bin/python}" scripts/adapters.py "$@"
