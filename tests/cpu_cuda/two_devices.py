"""A program for test_context.py: late work on the second device while the first one is current."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "device")]
os.environ.update(TRAPLINE_CPU_LATE="0", TRAPLINE_CPU_DEVICES="2")

from trapline import _boot  # noqa: E402

_boot.watch_for_cpu()

import late  # noqa: E402
import torch  # noqa: E402
from trapline._cpu import redirect  # noqa: E402

redirect.install()
late.load(os.environ["TRAPLINE_CUDA_DRIVER"])

second = torch.cuda.Stream(device=1)
given = torch.full((4,), 3.0, device="cuda:1")
torch.cuda.synchronize(1)
with torch.cuda.stream(second), torch.cuda.device(0):
    with late.held(second):
        result = given * 2
        torch.cuda.current_stream(0).synchronize()
        done_early = ctypes.c_float.from_address(result.data_ptr()).value == 6.0
    second.synchronize()
print(torch.cuda.device_count(), result.device, done_early, result.tolist())
