"""The adapter, built for this torch, with a handler that keeps what it is given."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent), str(ROOT / "tests" / "python")]
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))

import portable  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
    collect_ignore_glob = ["test_*.py"]


class Fault(IndexError, RuntimeError):
    """What the tests' handler raises."""


class Guard:
    """The installed adapter and the violations that its handler was given."""

    def __init__(self, module):
        self.module = module
        self.violations = []
        self.overloads = module.install(self.handle)

    def handle(self, violation):
        self.violations.append(violation)
        return Fault(violation["contract"])

    def calls(self):
        """How many guarded calls the ring holds."""
        return len(self.module.history())


def load_adapter():
    """The adapter of this build tree; compiled first where its sources have changed."""
    if portable.is_wanted():
        return portable.Portable()
    from trapline._extension import compiler, finder
    from trapline._library import paths

    path = compiler.build(os.path.join(paths.build_dir(), "adapters"))
    return finder.load(path, compiler.GUARD)


@pytest.fixture(scope="session")
def adapter():
    return load_adapter()


@pytest.fixture
def guard(adapter):
    guard = Guard(adapter)
    yield guard
    adapter.uninstall()


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
