"""The guard in this process, and Inductor's cache of compiled code in the build folder."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
BUILD = Path(os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))).resolve()
# The runs of this suite share what they compile, in the places that `make clean` empties.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(BUILD / "inductor-cache")
sys.path[:0] = [str(p) for p in (HERE, ROOT / "python", ROOT / "tests" / "e2e", ROOT / "tests" / "python")]

LONG = os.environ.get("TRAPLINE_LONG") == "1"

if importlib.util.find_spec("torch") is None:  # scripts/test.sh says so
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def installed() -> Iterator[None]:
    """The guard as `trapline.install()` puts it into a process."""
    import trapline

    trapline.install()
    assert trapline.is_active()
    yield
    trapline.uninstall()


@pytest.fixture
def guard(installed: None) -> Iterator[None]:
    """The guard, which has reported no place yet, and a Dynamo that has compiled nothing yet."""
    import torch
    from trapline._fault.program import sites

    sites.forget()
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
