#!/usr/bin/env bash
# Writes the pages of docs/ that are made from tables: scripts/docs.sh [BUILD FOLDER]. Tests say when one is due.
# docs/parity.md is measured, not made: tests/cpu_cuda/parity.py --write runs every example four times,
# with --cuda five.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
export TRAPLINE_BUILD_DIR=$PWD/$build TRAPLINE_UPDATE_DOCS=1
scripts/pages.sh "$build"                                                      # docs/causes
"$build/bin/test_diagnose" --gtest_brief=1 --gtest_filter=ContractsPage.\*    # docs/contracts.md
.venv/bin/python scripts/rooms.py --write                                        # docs/rooms.md
# docs/coverage.md; 5: left out, since torch is missing
.venv/bin/python -m pytest -q -p no:cacheprovider tests/guard/test_coverage.py || [[ $? == 5 ]]
.venv/bin/python scripts/pictures --build "$build"                              # docs/pictures
.venv/bin/python scripts/docs_output.py --write --build "$build"                # sessions that pages show
git status --short docs README.md examples
