"""Shared by the Python tests: the package on the path, and child processes as `trapline run` makes them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
PYTHON_DIR = REPO / "python"
BUILD_DIR = Path(os.environ.get("TRAPLINE_BUILD_DIR", REPO / "build")).resolve()
LIBRARY = BUILD_DIR / "lib" / "libtrapline.so"

if str(PYTHON_DIR) not in sys.path:
    sys.path.insert(0, str(PYTHON_DIR))


class Guarded:
    """Starts Python programs with the environment that ``trapline run`` gives them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reports = folder / "reports"
        self.reports.mkdir()
        path = str(PYTHON_DIR / "trapline" / "startup")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TRAPLINE_", "PYTHON"))}
        self.env = {
            **inherited,
            "PYTHONPATH": path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRAPLINE_GUARD": "1",
            "TRAPLINE_DEBUG": "1",
            "TRAPLINE_REPORT_DIR": str(self.reports),
            "TRAPLINE_LIB": str(LIBRARY),
            "TRAPLINE_BUILD_DIR": str(BUILD_DIR),
            "TRAPLINE_ADAPTER": "pure",  # nothing here depends on a compiler unless a test says so
        }

    def start(self, *command: str, **env: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=self.folder,
            env={**self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess:
        """Run ``python *command`` in a folder of its own."""
        process = self.start(*command, **env)
        out, err = process.communicate(timeout=240)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def script(self, name: str, text: str) -> Path:
        """Write a Python file into the program's folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    return Guarded(tmp_path)


@pytest.fixture(scope="session")
def library() -> Path:
    """libtrapline.so of the build under test."""
    if not LIBRARY.is_file():
        pytest.fail(f"{LIBRARY} is missing: build it or set TRAPLINE_BUILD_DIR", pytrace=False)
    os.environ.setdefault("TRAPLINE_LIB", str(LIBRARY))
    return LIBRARY
