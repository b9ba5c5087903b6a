#!/usr/bin/env bash
# What scripts/try_wheel.sh does inside the new root. Ends with an exit status at the first thing that is not as it should be.
#
# try_inside.sh [without-proc]     TRY_PYTHON, TRY_TORCH
set -euo pipefail
cd /try
venv=/try/venv

say() { printf '  %-28s %s\n' "$1" "$2"; }
expect() { # what, exit status, words, command...
  local what=$1 code=$2 words=$3 got=0
  shift 3
  "$@" >/try/out 2>&1 || got=$?
  if [[ $got != "$code" ]] || { [[ $words ]] && ! grep -qF -- "$words" /try/out; }; then
    echo "trapline: try: $what: exit status $got" >&2
    head -20 /try/out >&2
    exit 1
  fi
  say "$what" ok
}
now() { date +%s.%N; }
passed() { echo "$(now) $1" | awk '{printf "%.1f s", $1 - $2}'; }

if [[ ${1:-} == without-proc ]]; then
  [[ ! -e /proc/self ]] || exit 3
  expect "without /proc: --version" 0 "trapline" $venv/bin/trapline --version
  expect "without /proc: run" 7 "" $venv/bin/trapline run -- /bin/sh -c 'exit 7'
  exit 0
fi

say "root" "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), $(ldd --version | head -1), $($TRY_PYTHON -V)"
for program in cc gcc g++ clang; do
  ! command -v $program >/dev/null || { echo "trapline: try: there is a compiler: $program" >&2 && exit 1; }
done

start=$(now)
$TRY_PYTHON -m venv $venv
say "venv" "$(passed "$start")"
begun=$(now)
$venv/bin/python -m pip install -q --no-index trapline-*.whl >/try/out 2>&1 || { cat /try/out >&2 && exit 1; }
say "pip install trapline" "$(passed "$begun")"
if [[ $TRY_TORCH != none ]]; then
  begun=$(now)
  if [[ $TRY_TORCH == site ]]; then
    for folder in "$venv"/lib/python3*/site-packages; do echo /try/site >"$folder/site.pth"; done
  else
    $venv/bin/python -m pip install -q --no-index --find-links wheels "torch==$TRY_TORCH" numpy >/try/out 2>&1 || {
      cat /try/out >&2
      exit 1
    }
    say "pip install torch (local)" "$(passed "$begun")"
  fi
  # What the machine does besides shows in the first figure alone.
  TIMEFORMAT='  its run                      %R s, of it %U + %S s of CPU'
  time expect "the README's example" 1 "error[TL102]: cross_entropy: target[25] is 195" \
    $venv/bin/trapline run -- $venv/bin/python image_classifier_head.py
  say "from nothing to the report" "$(passed "$start")"
  grep -F "trapline:" /try/out | head -3 || true
  time expect "again" 1 "error[TL102]" $venv/bin/trapline run -- $venv/bin/python image_classifier_head.py
  grep -F "trapline:" /try/out | head -3 || true
  $venv/bin/trapline run -- $venv/bin/python -c 'import torch; from trapline._guard import active
print("  guard:                      ", active.kind(), "on torch", torch.__version__)' || true
fi

cat >log.txt <<'END'
step 1
/pytorch/aten/src/ATen/native/cuda/Loss.cu:242: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [5,0,0] Assertion `t >= 0 && t < n_classes` failed.
END
gzip -kf log.txt
printf 'label\n1\n2\n12\n' >labels.csv
expect "--version" 0 "trapline 0" $venv/bin/trapline --version
expect "explain" 1 "error[TL" $venv/bin/trapline explain log.txt
expect "explain of a .gz" 1 "error[TL" $venv/bin/trapline explain log.txt.gz
expect "check labels" 1 "label[2] is 12" $venv/bin/trapline check labels labels.csv --classes 10
expect "an exception is thrown" 2 "--nonsense" $venv/bin/trapline check labels --nonsense
expect "run" 0 "hello" $venv/bin/trapline run -- $venv/bin/python -c 'print("hello")'
expect "python -m trapline" 0 "trapline 0" $venv/bin/python -m trapline --version
expect "import trapline" 0 "True" $venv/bin/python -c 'from trapline._library import paths; print(bool(paths.library()))'
expect "pip install --target" 0 "" $venv/bin/python -m pip install -q --no-index --target /try/target trapline-*.whl
expect "its program" 0 "trapline 0" /try/target/bin/trapline --version
expect "supervise with a probe" 0 "" timeout 20 $venv/bin/trapline supervise --status 127.0.0.1:18897 -- /bin/true
