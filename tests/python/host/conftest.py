"""Runs small programs under the hooks of this room and reads what they left."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import forked
import pytest

if importlib.util.find_spec("torch") is None:  # scripts/test.sh says so
    collect_ignore_glob = ["test_*.py"]

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR") or ROOT / "build")


class Forked:
    """The process that programs are forked from; a new one where a program has not ended in time."""

    def __init__(self) -> None:
        self.process: Optional[subprocess.Popen[str]] = None

    def run(self, request: dict[str, Any]) -> int:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", forked.STARTS],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdin and self.process.stdout
        print(json.dumps(request), file=self.process.stdin, flush=True)
        if not select.select([self.process.stdout], [], [], 120)[0]:
            self.end()
            pytest.fail("the program has not ended in two minutes", pytrace=False)
        return int(self.process.stdout.readline())

    def end(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
        self.process = None


@pytest.fixture(scope="session")
def parent() -> Iterator[Forked]:
    one = Forked()
    yield one
    one.end()


class Ended:
    """A program's end: exit code, streams, findings."""

    def __init__(self, code: int, out: str, err: str, reports: list[dict[str, Any]]) -> None:
        self.code, self.out, self.err, self.reports = code, out, err, reports

    @property
    def finding(self) -> dict[str, Any]:
        assert len(self.reports) == 1, (self.reports, self.err)
        return self.reports[0]["findings"][0]


@pytest.fixture
def run(tmp_path: Path, parent: Forked) -> Any:
    """run(source, setup=...) -> Ended; `setup` installs a part of Trapline before the program starts. `anew`:
    in a process of its own, and not in one that has imported torch already."""

    def start(
        source: str, setup: str = "", library: bool = True, anew: bool = False, **variables: str
    ) -> Ended:
        if library and not (BUILD / "lib" / "libtrapline.so").is_file():
            pytest.skip(f"no libtrapline.so in {BUILD}: run `make build`")
        reports = tmp_path / "reports"
        reports.mkdir(exist_ok=True)
        program = tmp_path / "program.py"
        program.write_text(source, encoding="utf-8")
        start_up = tmp_path / "startup"
        start_up.mkdir(exist_ok=True)
        (start_up / "sitecustomize.py").write_text(setup, encoding="utf-8")
        old = program.stat().st_mtime - 3600  # a source that is younger than the process is not quoted
        os.utime(program, (old, old))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TRAPLINE_")}
        environment.update(
            PYTHONPATH=f"{start_up}{os.pathsep}{ROOT / 'python'}",
            TRAPLINE_REPORT_DIR=str(reports),
            TRAPLINE_BUILD_DIR=str(BUILD),
            TRAPLINE_DEBUG="1",
            OMP_NUM_THREADS="1",
            **variables,
        )
        streams = tmp_path / "out", tmp_path / "err"
        if anew:
            with streams[0].open("w") as out, streams[1].open("w") as err:
                code = subprocess.run(  # noqa: PLW1510
                    [sys.executable, str(program)], env=environment, stdout=out, stderr=err, timeout=120
                ).returncode
        else:
            for stream in streams:
                stream.write_bytes(b"")
            code = parent.run(
                {
                    "program": str(program),
                    "environment": environment,
                    "out": str(streams[0]),
                    "err": str(streams[1]),
                }
            )
        found = [
            json.loads(path.read_text(encoding="utf-8")) for path in sorted(reports.glob("finding-*.json"))
        ]
        return Ended(code, *(stream.read_text(encoding="utf-8") for stream in streams), found)

    return start


@pytest.fixture
def refuse(run: Any, tmp_path: Path, request: Any) -> Any:
    """refuse(program) -> Ended; the package `checker`, the test file's PACKAGE, is installed for it."""
    folder = tmp_path / "site-packages" / "checker"
    folder.mkdir(parents=True)
    file = folder / "__init__.py"
    file.write_text(request.module.PACKAGE, encoding="utf-8")
    old = file.stat().st_mtime - 3600
    os.utime(file, (old, old))
    head = f"import sys\nsys.path.insert(0, {str(folder.parent)!r})\nimport torch\nimport checker\n"

    def start(program: str) -> Any:
        for report in (tmp_path / "reports").glob("*"):  # of the test's program before this one
            report.unlink()
        return run(head + program, request.module.SETUP)

    return start
