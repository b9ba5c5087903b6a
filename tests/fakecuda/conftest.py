"""PyTorch's unmodified CUDA build over a stand-in for the CUDA runtime: `make test-cuda`, docs/cuda-build.md.

Everywhere else there is nothing to run here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "e2e")]
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))

if os.environ.get("TRAPLINE_GPU") == "1":  # `make gpu-proof`: a real one
    collect_ignore_glob = ["test_torch_cuda.py"]
elif "FAKE_CUDA_KERNELS" not in os.environ:
    collect_ignore_glob = ["test_*.py"]
