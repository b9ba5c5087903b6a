"""The tests' device and the guard on it. Nothing here has seen a GPU."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
sys.path[:0] = [str(ROOT / "python"), str(HERE)]
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))
BUILD = Path(os.environ["TRAPLINE_BUILD_DIR"])
FAKE_CUDA = BUILD / "lib" / "libfake_cuda.so"
os.environ["TRAPLINE_DEVICE_TYPE"] = "privateuseone"
os.environ["TRAPLINE_CUDA_DRIVER"] = str(FAKE_CUDA)

try:
    import torch
except ImportError:
    torch = None
if torch is None or not FAKE_CUDA.exists():
    collect_ignore_glob = ["test_*.py"]


def backend():
    """Path of the compiled backend; compiled first where its sources or torch have changed."""
    from trapline import _build

    sources = sorted((HERE / "backend").iterdir())
    flags = [flag for flag in _build._flags() if flag != "-O2"] + ["-O1"]
    digest = hashlib.sha256("\0".join([torch.__version__, str(FAKE_CUDA), *flags]).encode())
    for path in sources:
        digest.update(path.read_bytes())
    product = BUILD / "adapters" / f"fakedev-{digest.hexdigest()[:12]}.so"
    if product.exists():
        return product
    product.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=product.parent) as work:
        unit = Path(work, "unit.cpp")
        unit.write_text("".join(f'#include "{p}"\n' for p in sources if p.suffix == ".cpp"))
        includes = ["-I", HERE / "backend", "-I", ROOT / "tests" / "fakecuda"]
        for folder in _build._torch_includes():
            includes += ["-isystem", folder]
        made = Path(work, "unit.so")
        libraries = [*_build._torch_libraries(), FAKE_CUDA, f"-Wl,-rpath,{FAKE_CUDA.parent}"]
        compiler = [*_build._compiler(), "-shared", *flags, *includes, unit, "-o", made, *libraries]
        subprocess.run([str(part) for part in compiler], check=True)
        os.replace(made, product)
    return product


@pytest.fixture(scope="session")
def device():
    import fakedev

    fakedev.load(str(backend()), str(FAKE_CUDA))
    return fakedev


@pytest.fixture(scope="session")
def adapter(device):
    from trapline import _adapter, _build, _paths

    return _adapter.load(_build.build(os.path.join(_paths.build_dir(), "adapters")))


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
def guard(adapter, device):
    from trapline import _device

    guard = Guard(adapter)
    device.reset()
    adapter.install(guard.handle)
    _device.install(adapter)
    yield guard
    _device.uninstall()
    adapter.uninstall()
    device.reset()
