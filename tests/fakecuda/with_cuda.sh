#!/usr/bin/env bash
# with_cuda.sh FOLDER COMMAND...: runs a command whose PyTorch is the CUDA build, over the stand-in that
# tests/fakecuda/build.py has made in FOLDER.
set -euo pipefail
folder=$(cd "$1" && pwd)
shift
export LD_PRELOAD="$folder/libcudart.so.13${LD_PRELOAD:+:$LD_PRELOAD}"
export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export FAKE_CUDA_KERNELS="$folder/libfake_cuda_kernels.so"
FAKE_CUDA_SITE=$(cd "$(dirname "${BASH_SOURCE[0]}")/site" && pwd)
export FAKE_CUDA_SITE
exec "$@"
