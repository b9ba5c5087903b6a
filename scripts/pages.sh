#!/usr/bin/env bash
# Writes docs/causes/*.md and their list, docs/causes.md, from `trapline why`: scripts/pages.sh [BUILD FOLDER]. Tests
# say when it is due.
set -euo pipefail
cd "$(dirname "$0")/.."
trapline=${1:-build}/bin/trapline
"$trapline" why | while read -r code slug _; do
  [[ $code == TL* ]] || continue
  "$trapline" why "$code" --markdown >"docs/causes/$slug.md"
done
{
  printf '# The causes\n\n'
  # shellcheck disable=SC2016 # the backticks are Markdown's
  printf 'Every report begins with a code. `trapline why TL101` prints its page on the terminal.\n\n'
  printf '| code | cause |\n|---|---|\n'
  "$trapline" why | while read -r code slug title; do
    [[ $code != TL* ]] || printf '| [%s](causes/%s.md) | %s |\n' "$code" "$slug" "$title"
  done
} >docs/causes.md
