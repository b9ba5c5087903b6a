"""Real trainers, each in a process of its own: under ``trapline run``, after ``install()``, and alone.

A trainer that this Python lacks is used from the Python that ``TRAPLINE_TEST_PYTHON`` names, where that has
it; else its tests are left out, and say so.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Optional

import pytest

REPO = Path(__file__).resolve().parents[3]
BUILD_DIR = Path(os.environ.get("TRAPLINE_BUILD_DIR", REPO / "build")).resolve()
TRAPLINE = BUILD_DIR / "bin" / "trapline"
PROGRAMS = Path(__file__).parent / "programs"

if str(REPO / "python") not in sys.path:
    sys.path.insert(0, str(REPO / "python"))
if importlib.util.find_spec("torch") is None:  # scripts/test.sh says so
    collect_ignore_glob = ["test_*.py"]


@cache
def python_with(*modules: str) -> Optional[str]:
    """A Python that has these modules."""
    for python in (sys.executable, os.environ.get("TRAPLINE_TEST_PYTHON")):
        code = f"import importlib.util as u; assert all(u.find_spec(n) for n in {modules!r})"
        if python and subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0:
            return python
    return None


def need(*modules: str) -> str:
    """The same, or the test is left out."""
    python = python_with(*modules)
    if python is None:
        pytest.skip(
            f"{' and '.join(modules)}: not here, and TRAPLINE_TEST_PYTHON names no Python that has it"
        )
    return python


class Outcome:
    """What became of a program: its output, its report, and the first finding."""

    def __init__(self, done: subprocess.CompletedProcess, report: Optional[Path]) -> None:
        self.returncode = done.returncode
        self.out, self.err = done.stdout, done.stderr
        self.findings: list[dict[str, Any]] = []
        if report is not None and report.exists():
            self.findings = json.loads(report.read_text("utf-8"))["findings"]

    @property
    def finding(self) -> dict[str, Any]:
        assert self.findings, self.err[-4000:]
        return self.findings[0]

    def result(self) -> str:
        """The program's own last word: its loss."""
        # Ranks share the pipe: what another one writes may stand on the same line.
        lines = [line.strip() for line in re.findall(r"result (?:(?!result ).)*", self.out)]
        assert lines, self.err[-4000:]
        return "\n".join(sorted(lines))


class Trainers:
    """Starts the programs beside this file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def environment(self, **env: str) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TRAPLINE_", "PYTHON"))}
        return {
            **inherited,
            "PYTHONPATH": str(REPO / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRAPLINE_BUILD_DIR": str(BUILD_DIR),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            **env,
        }

    def plain(self, python: str, *command: str, **env: str) -> Outcome:
        """Without `trapline run`."""
        return self._run([python, *self._found(command)], None, env)

    def run(self, python: str, *command: str, options: tuple[str, ...] = (), **env: str) -> Outcome:
        """Under `trapline run` with these options, with its report as JSON."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        prefix = [str(TRAPLINE), "run", *options, "--format", "json", "-o", str(report), "--", python]
        return self._run([*prefix, *self._found(command)], report, env)

    def text(self, python: str, *command: str, **env: str) -> Outcome:
        """Under `trapline run`, with its report as text on stderr."""
        return self._run([str(TRAPLINE), "run", "--", python, *self._found(command)], None, env)

    def _found(self, command: tuple[str, ...]) -> list[str]:
        return [str(PROGRAMS / word) if (PROGRAMS / word).is_file() else word for word in command]

    def _run(self, command: list[str], report: Optional[Path], env: dict[str, str]) -> Outcome:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(**env),
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
        return Outcome(done, report)


@pytest.fixture
def trainers(tmp_path: Path) -> Trainers:
    if not TRAPLINE.exists():
        pytest.fail(f"{TRAPLINE} is missing: build it or set TRAPLINE_BUILD_DIR", pytrace=False)
    return Trainers(tmp_path)


TORCHRUN = ("-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0")
