#!/usr/bin/env bash
# Writes docs/causes/*.md from `trapline why`: scripts/pages.sh [BUILD FOLDER]. A test says when it is due.
set -euo pipefail
cd "$(dirname "$0")/.."
trapline=${1:-build}/bin/trapline
"$trapline" why | while read -r code slug _; do
  [[ $code == TL* ]] || continue
  "$trapline" why "$code" --markdown >"docs/causes/$slug.md"
done
