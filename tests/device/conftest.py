"""The device of ``trapline run --cpu`` with late work, and the guard on it. Nothing here has seen a GPU.

Where FAKE_CUDA_KERNELS is set the device is PyTorch's own, over a stand-in for CUDA (docs/cuda-build.md).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
sys.path[:0] = [str(ROOT / "python"), str(HERE), str(ROOT / "tests" / "python")]
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))
CUDA_BUILD = "FAKE_CUDA_KERNELS" in os.environ
if not CUDA_BUILD:
    os.environ["TRAPLINE_CPU_LATE"] = "0"

import portable  # noqa: E402
from trapline import _boot  # noqa: E402
from trapline._cpu import backend  # noqa: E402

if not CUDA_BUILD:
    _boot.watch_for_cpu()
try:
    import torch
except ImportError:
    torch = None
if torch is None:
    collect_ignore_glob = ["test_*.py"]
elif CUDA_BUILD:
    import late

    late.load("libcuda.so.1")
elif backend.device is None:
    raise RuntimeError(f"the device of --cpu is not there: {backend.notes}")
else:
    import late
    from trapline._cpu import redirect

    redirect.install()
    late.load(os.environ["TRAPLINE_CUDA_DRIVER"])


def pytest_collection_modifyitems(items):
    portable.leave_out(items)


@pytest.fixture(scope="session")
def adapter():
    from trapline._extension import compiler
    from trapline._guard import active
    from trapline._library import paths

    if portable.is_wanted():
        return portable.Portable()
    return active.load(compiler.build(os.path.join(paths.build_dir(), "adapters")))


class Guard:
    """The installed adapter; its handler raises programs.Fault, which carries the violation."""

    def __init__(self, module):
        self.module = module
        self.violations = []

    def handle(self, violation):
        from programs import Fault

        self.violations.append(violation)
        return Fault(violation)

    def counts(self):
        return self.module.info()["device"]


@pytest.fixture
def guard(adapter):
    from trapline._fault.data import batches
    from trapline._guard import waits

    guard = Guard(adapter)
    late.reset()
    adapter.install(guard.handle)
    waits.install(adapter)
    batches.tell_each(adapter.device_batch)
    yield guard
    late.come()  # a check that reports after uninstall() would tell the next test
    batches.tell_each(None)
    waits.uninstall()
    adapter.uninstall()
    late.reset()
