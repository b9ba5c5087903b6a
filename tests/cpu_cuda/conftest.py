"""The device of ``trapline run --cpu`` in the tests' own process, without the guard."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent)]
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))
os.environ.setdefault("TRAPLINE_CPU_DEVICES", "2")

from trapline import _boot  # noqa: E402
from trapline._cpu import backend  # noqa: E402

_boot.watch_for_cpu()
try:
    import torch
except ImportError:
    torch = None
if torch is None:
    collect_ignore_glob = ["test_*.py"]
elif backend.device is None:
    raise RuntimeError(f"the stand-in for CUDA is not there: {backend.notes}")
else:
    from trapline._cpu import redirect

    redirect.install()


@pytest.fixture(autouse=True)
def context():
    """Each test finds a living context and the first device, and leaves them so."""
    yield
    backend.device.restore_context()
    torch.cuda.set_device(0)
