#!/usr/bin/env bash
# Formatting, static checks of C++, Python and shell. Exits non-zero on the first kind that complains.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs clang-format-14 --dry-run -Werror
.venv/bin/python -m ruff check python tests examples bench scripts packaging
.venv/bin/python -m ruff format --check python tests examples bench scripts packaging
git ls-files '*.sh' .ci/run | xargs shellcheck
# clang-tidy needs the compile commands of a build; the files of guard (but preload) and cpu_cuda are compiled outside CMake.
if [[ ! -f $build/compile_commands.json ]]; then
  cmake -S . -B "$build" -G Ninja -DTRAPLINE_PYTHON="$PWD/.venv/bin/python" >/dev/null
fi
# It cannot read GCC's precompiled headers, which no file needs.
mkdir -p "$build/lint"
sed 's/-Winvalid-pch -include [^ "]*cmake_pch\.hxx//g' "$build/compile_commands.json" >"$build/lint/compile_commands.json"
git ls-files 'src/*.cpp' | grep -Ev '^src/(guard/([^/]+$|python/|cpp/)|cpu_cuda/)' | xargs -P "$(nproc)" -n 4 clang-tidy-14 -p "$build/lint" --quiet 2>/dev/null
echo "lint: clean"
