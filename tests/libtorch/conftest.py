"""The C++ example, built once with the libtorch of this Python's torch, and the guard for it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))).resolve()
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "e2e")]
EXAMPLE = ROOT / "examples" / "libtorch_classifier"

SPEC = importlib.util.find_spec("torch")
if SPEC is None or not (BUILD / "lib" / "libtrapline_native.so").exists():  # the configuration says so
    collect_ignore_glob = ["test_*.py"]


def run_or_fail(*command: object) -> None:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def libtorch() -> Path:
    return Path(SPEC.origin).parent


def build(source: Path, libtorch: Path, folder: Path) -> None:
    options = [f"-DCMAKE_PREFIX_PATH={libtorch}"]
    if shutil.which("ccache"):
        options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    run_or_fail("cmake", "-S", source, "-B", folder, *options)
    run_or_fail("cmake", "--build", folder)


@pytest.fixture(scope="session")
def program(libtorch: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    build(EXAMPLE, libtorch, folder)
    return folder / "classifier"


@pytest.fixture(scope="session")
def handled(libtorch: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It catches its fault after it has limited itself."""
    folder = tmp_path_factory.mktemp("handled")
    build(Path(__file__).parent / "handled", libtorch, folder)
    return folder / "handled"


@pytest.fixture(scope="session")
def guard(libtorch: Path) -> Path:
    """The guard where the build tree has it. The command needs no torch and no virtual environment."""
    builder = ROOT / "python" / "trapline" / "_build_libtorch.py"
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    run_or_fail(python, "-I", builder, "--libtorch", libtorch, "--out", BUILD / "adapters")
    (guard,) = (BUILD / "adapters").glob("trapline_libtorch-*.so")
    return guard
