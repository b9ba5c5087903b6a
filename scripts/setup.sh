#!/usr/bin/env bash
# Brings a fresh Debian 12 machine to the point where `make build` works. Idempotent; a second run takes no time.
#
# setup.sh [demo|lint]   demo: only what `make demo` needs, without the tests' packages; lint: also `make lint`'s tools
# setup.sh wheel [cross] what scripts/wheel.sh needs, without .venv; cross: also for a wheel of aarch64
# TRAPLINE_NO_TORCH=1    leave torch out: the guard and the tests that need it are left out too
# PIP_EXTRA_INDEX_URL    where pip finds PyTorch's CPU builds, when the default index has only the CUDA ones
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { # what, why, what to do
  echo "trapline: setup: $1: $2: $3" >&2
  exit 2
}

# 1. Distribution packages. docs/dependencies.md says why each is needed.
packages=(g++ cmake ninja-build pkg-config git ca-certificates python3 python3-venv python3-dev
  libcli11-dev libfmt-dev nlohmann-json3-dev libre2-dev libhwy-dev
  zlib1g-dev libzstd-dev libbz2-dev liblzma-dev libsimdjson-dev libpng-dev libsqlite3-dev libhdf5-dev libcpp-httplib-dev libssl-dev libtomlplusplus-dev prometheus-cpp-dev)
[[ ${1:-} == demo || ${1:-} == wheel ]] || packages+=(libgtest-dev libbenchmark-dev libdw-dev libbackward-cpp-dev)
[[ ${1:-} == lint ]] && packages+=(clang-format-14 clang-tidy-14 shellcheck)
[[ ${1:-} == wheel ]] && packages+=(make perl patch dpkg-dev binutils)
[[ ${1:-}${2:-} == wheelcross ]] && packages+=(g++-aarch64-linux-gnu qemu-user-static)
missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    [[ $status == *"install ok installed"* ]] || missing+=("$package")
  done
fi
if ((${#missing[@]})); then
  sudo=""
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || fail "cannot install ${missing[*]}" "not root and no sudo" "install them and run again"
    sudo=sudo
  fi
  echo "trapline: setup: installing ${missing[*]}"
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  if ! { $sudo apt-get update -q && $sudo apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -5 "$log" >&2
    fail "cannot install ${missing[*]}" "apt-get failed, see $log" "check the package sources and run again"
  fi
  rm -f "$log"
fi
for program in cmake ninja c++ python3; do
  command -v "$program" >/dev/null || fail "$program is missing" "this is not a Debian-like machine" \
    "install: ${packages[*]}"
done

if [[ ${1:-} == wheel ]]; then
  tools=build-wheel-tools
  if [[ ! -f $tools/.done ]]; then
    /usr/bin/python3 -m venv "$tools" || fail "cannot make $tools" "venv failed" "install python3-venv"
    "$tools/bin/python" -m pip install -q --disable-pip-version-check ziglang==0.17.1 ||
      fail "cannot install ziglang" "pip failed" "check the package index and run again"
    "$tools/bin/python" -m pip install -q --disable-pip-version-check auditwheel || true # only looks once more
    touch "$tools/.done"
  fi
  exit 0
fi

# 2. The virtual environment. Its stamps change with the list of requirements and with the wish for torch.
requirements=scripts/requirements.txt
wanted="$(sha256sum <"$requirements") torch=${TRAPLINE_NO_TORCH:-yes}"
stamp=.venv/.trapline-setup
demo_stamp=.venv/.trapline-setup-demo
demo_wanted="torch=${TRAPLINE_NO_TORCH:-yes}"
is_done() { [[ -x .venv/bin/python && -f $1 && $(<"$1") == "$2" ]]; }
if is_done "$stamp" "$wanted"; then exit 0; fi
if [[ ${1:-} == demo ]] && is_done "$demo_stamp" "$demo_wanted"; then exit 0; fi

python=python3
# PyTorch's builds exist for a few Python versions only; take the distribution's when the first on PATH is none of them.
supported='import sys, venv, ensurepip; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 14))'
if ! "$python" -c "$supported" 2>/dev/null; then python=/usr/bin/python3; fi
"$python" -c "$supported" 2>/dev/null || fail "no usable Python" "need 3.9 to 3.14 with venv" "install python3-venv"
[[ -x .venv/bin/python ]] || "$python" -m venv .venv || fail "cannot make .venv" "venv failed" "remove .venv and run again"

pip() { .venv/bin/python -m pip install -q --disable-pip-version-check "$@"; }
echo "trapline: setup: installing Python packages into .venv"
if [[ -z ${TRAPLINE_NO_TORCH:-} ]]; then
  # Pinned always. The CPU build where an index has it; else the pinned default build (on Linux it brings CUDA).
  pip torch==2.13.0+cpu 2>/dev/null || {
    echo "trapline: setup: no CPU build of torch 2.13.0 in the package index; taking its default build (large)"
    pip torch==2.13.0 || fail "cannot install torch==2.13.0" "pip failed" \
      "set PIP_EXTRA_INDEX_URL to PyTorch's CPU index, or TRAPLINE_NO_TORCH=1 to go without the guard"
  }
fi
if [[ ${1:-} == demo ]]; then
  pip "$(grep '^numpy' "$requirements")" || fail "cannot install numpy" "pip failed" "check the package index and run again"
  echo "$demo_wanted" >"$demo_stamp"
  exit 0
fi
pip -r "$requirements" || fail "cannot install the test requirements" "pip failed" "check the package index and run again"
echo "$wanted" >"$stamp"
