"""What Python does for `trapline supervise`: the guard of this process, and child processes like its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))).resolve()
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent)]

try:
    import torch
except ImportError:  # scripts/test.sh says so
    torch = None
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def guard() -> Iterator[None]:
    """The guard in this process; the one in Python, which needs no compiler."""
    import trapline

    os.environ["TRAPLINE_ADAPTER"] = "pure"
    trapline.install()
    yield
    trapline.uninstall()


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins without refused requests, without a supervisor, and with no place reported."""
    from trapline._fault.program import sites
    from trapline._supervise import inflight, refused

    for name in ("TRAPLINE_SUPERVISE_DIR", "TRAPLINE_CONTEXT_SOCKET", "TRAPLINE_STANDBY_FD", "LISTEN_FDS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(refused, "_known", refused._Known())
    monkeypatch.setattr(inflight, "_table", None)
    monkeypatch.setattr(inflight, "_failed_in", None)
    sites.forget()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a supervisor."""
    path = tmp_path / "supervise"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("TRAPLINE_SUPERVISE_DIR", str(path))
    return path


class Programs:
    """Python programs with the environment that `trapline supervise` gives them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen] = []
        python = ROOT / "python"
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("TRAPLINE_", "PYTHON", "LISTEN"))
        }
        self.env = {
            **inherited,
            "PYTHONPATH": os.pathsep.join([str(python / "trapline" / "startup"), str(python)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRAPLINE_GUARD": "1",
            "TRAPLINE_LIB": str(BUILD / "lib" / "libtrapline.so"),
            "TRAPLINE_BUILD_DIR": str(BUILD),
            "TRAPLINE_ADAPTER": "pure",
        }

    def start(self, text: str, *, env: dict[str, str] | None = None, **popen: Any) -> subprocess.Popen:
        """Starts a program given as text, with its output in pipes."""
        file = self.folder / "program.py"
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, str(file)],
            cwd=self.folder,
            env={**self.env, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **popen,
        )
        self._running.append(process)
        return process

    def run(self, text: str, **env: str) -> subprocess.CompletedProcess:
        """Runs it to its end."""
        process = self.start(text, env=env)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def end(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                pipe.close()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    programs = Programs(tmp_path)
    yield programs
    programs.end()
