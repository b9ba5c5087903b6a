#!/usr/bin/env bash
# .venv-cuda: PyTorch's unmodified CUDA build with its dependencies, for `make test-cuda`. Not for a GPU: for a
# machine without one, where tests/fakecuda stands in for CUDA. Idempotent; what was downloaded is kept by pip.
#
# TRAPLINE_CUDA_INDEX    the package index that has the default build of torch, where it is not pip's own default
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { # what, why, what to do
  echo "trapline: cuda-venv: $1: $2: $3" >&2
  exit 2
}

python=${PYTHON:-python3}
supported='import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))'
"$python" -c "$supported" 2>/dev/null || fail "no usable Python" "need 3.10 to 3.14 with venv" "set PYTHON"
venv=.venv-cuda
stamp=$venv/.trapline-setup
wanted="torch==2.13.0 crt13.0 $(sha256sum <scripts/requirements.txt)"
if [[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$wanted" ]]; then exit 0; fi

echo "trapline: cuda-venv: installing PyTorch's CUDA build into $venv: 2.5 GB to download and 5 GB on disk;" \
  "two minutes where the network is fast; run again to go on where it was stopped"
available=$(df --output=avail -k . | tail -1)
((available > 9000000)) || [[ -f $venv/.torch ]] || fail "not enough disk space" "$((available >> 20)) GiB are free" \
  "make 9 GB free"
[[ -x $venv/bin/python ]] || "$python" -m venv "$venv" || fail "cannot make $venv" "venv failed" "remove it"

# Without the settings of this machine, which may prefer a CPU build; pip keeps what it downloads.
index=${TRAPLINE_CUDA_INDEX:+--index-url=$TRAPLINE_CUDA_INDEX}
default_pip() {
  PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS="" PIP_EXTRA_INDEX_URL="" \
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --retries 10 ${index:+"$index"} "$@"
}
default_pip "torch==2.13.0" "numpy>=1.26,<3" "nvidia-cuda-crt==13.0.*" ||
  fail "cannot install torch==2.13.0" "pip failed" "run this again: it goes on where it was stopped"
"$venv/bin/python" -c 'import sys, torch.version; sys.exit(torch.version.cuda is None)' ||
  fail "torch is no CUDA build" "the index has another" "set TRAPLINE_CUDA_INDEX to one that has"
touch "$venv/.torch"
"$venv/bin/python" -m pip install -q --disable-pip-version-check -r scripts/requirements.txt ||
  fail "cannot install the test requirements" "pip failed" "check the package index and run again"

# Reads FAKE_CUDA_SITE, which only tests/fakecuda/with_cuda.sh sets.
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cat >"$site/trapline_fake_cuda.pth" <<'EOF'
import os, sys; "FAKE_CUDA_SITE" in os.environ and (sys.path.append(os.environ["FAKE_CUDA_SITE"]), __import__("fake_cuda_site"))
EOF
echo "$wanted" >"$stamp"
