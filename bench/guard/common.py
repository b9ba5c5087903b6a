"""The adapter in its benchmark build (with loops in C++), built beside the ordinary one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))


def adapter() -> ModuleType:
    """The adapter, not installed. torch is imported here with one thread, so that figures can be compared."""
    os.environ["TRAPLINE_GUARD_CXXFLAGS"] = "-DTRAPLINE_BENCH"
    import torch
    from trapline._extension import compiler, finder
    from trapline._library import paths

    torch.set_num_threads(1)
    path = compiler.build(os.path.join(str(paths.build_dir()), "adapters-bench"))
    return finder.load(path, compiler.GUARD)


def plain_adapter() -> str:
    """The path of the adapter as users have it."""
    from trapline._extension import compiler
    from trapline._library import paths

    return compiler.build(os.path.join(str(paths.build_dir()), "adapters"))


def fail(violation: dict) -> IndexError:
    """No operation of a benchmark may be reported."""
    raise SystemExit(f"bench: unexpected violation of {violation['contract']}")
