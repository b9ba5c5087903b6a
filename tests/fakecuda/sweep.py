"""PyTorch's own samples of its operations under its CUDA build, over the stand-in: what `cuda` gives is what
`cpu` gives, but for the last bits where PyTorch takes another formula on CUDA.

``with_cuda.sh FOLDER python tests/fakecuda/sweep.py [--samples N] [--all-dtypes] [NAME...]`` prints each
difference and the shares. "refused": no stand-in for a kernel, or a library of NVIDIA's that is not there.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import types
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "cpu_cuda")]
# The sweep asks it whether the context is lost, and restores it.
driver = ctypes.CDLL("libcuda.so.1")
device = types.SimpleNamespace(
    context_lost=lambda: bool(driver.fake_cuda_poisoned()), restore_context=driver.fake_cuda_reset
)
import sweep  # noqa: E402
import torch  # noqa: E402

NOT_THERE = (
    "invalid device function",
    "cusparse",
    "cublas",
    "cusolver",
    "cudnn",
    "cuFFT",
    "not supported",
    "NVRTC",
)


def close(a, b):
    if a.dtype != b.dtype or a.shape != b.shape or a.layout != b.layout:
        return False
    if a.layout != torch.strided:
        a, b = a.to_dense(), b.to_dense()
    if a.is_nested or a.is_quantized or a.numel() == 0:
        return True
    wide = torch.complex128 if a.is_complex() else torch.float64
    return torch.allclose(a.detach().to(wide), b.detach().to(wide), rtol=1e-4, atol=1e-5, equal_nan=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--all-dtypes", action="store_true")
    parser.add_argument("--progress", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    sweep.backend.device = device
    sweep.ASKS |= {f"jiterator_{kind}" for kind in ("unary", "binary", "4inputs_with_extra_args")}
    sweep.ASKS |= {"jiterator_binary_return_by_ref", "jiterator_2inputs_2outputs"}  # compiled for a GPU
    sweep.bits = close
    sweep.refused = lambda text: isinstance(text, str) and any(word in text for word in NOT_THERE)
    print(sweep.sweep(arguments.names, arguments.samples, arguments.all_dtypes, arguments.progress).text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
