"""Runs programs under `trapline run` as a user would, and keeps all they leave behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR") or REPO / "build").resolve()
TRAPLINE = BUILD / "bin" / "trapline"
EXAMPLES = REPO / "examples"
PYTHON = sys.executable
TIME_LIMIT = 120  # a hang is a failure, not a wait; no test asserts a time


@dataclass
class Outcome:
    """What one run left: exit code, both streams, and the JSON report where one was asked for."""

    returncode: int
    stdout: str
    stderr: str
    report: Optional[dict[str, Any]] = None
    written: list[dict[str, Any]] = field(
        default_factory=list
    )  # the processes' own files in the report folder

    @property
    def trapline_lines(self) -> list[str]:
        return [line for line in self.stderr.splitlines() if "trapline" in line.lower()]


def environment(**extra: str) -> dict[str, str]:
    """The caller's environment without anything that would leak into the run."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TRAPLINE_")
        # Unbuffered, print() writes a line in two pieces, and those of two processes mingle.
        and name not in ("PYTHONPATH", "PYTHONUNBUFFERED", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")
    }
    env["TRAPLINE_BUILD_DIR"] = str(BUILD)
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    if "TRAPLINE_TEST_ADAPTER" in os.environ:  # tests/python/portable.py
        env["TRAPLINE_ADAPTER"] = os.environ["TRAPLINE_TEST_ADAPTER"]
    env.update(extra)
    return env


def plain(command: Sequence[str], **options: Any) -> Outcome:
    """The command alone, without Trapline."""
    return _run([str(part) for part in command], options.pop("env", None) or environment(), options)


def trapline(
    arguments: Sequence[str], command: Sequence[str], env: Optional[dict[str, str]] = None, **options: Any
) -> Outcome:
    """`trapline run ARGUMENTS -- COMMAND`."""
    line = [str(TRAPLINE), "run", *map(str, arguments), "--", *map(str, command)]
    return _run(line, env or environment(), options)


def trapline_json(
    folder: Path,
    command: Sequence[str],
    arguments: Sequence[str] = (),
    env: Optional[dict[str, str]] = None,
    **options: Any,
) -> Outcome:
    """The same with `--format json -o FILE --report DIR`: the outcome carries the report and DIR."""
    folder.mkdir(parents=True, exist_ok=True)
    file, kept = folder / "report.json", folder / "kept"
    outcome = trapline(
        ["--format", "json", "-o", file, "--report", kept, *arguments], command, env, **options
    )
    if file.exists():
        outcome.report = json.loads(file.read_text(encoding="utf-8"))
    if kept.is_dir():
        outcome.written = [
            json.loads(f.read_text(encoding="utf-8")) for f in sorted(kept.glob("finding-*.json"))
        ]
    return outcome


def _run(line: list[str], env: dict[str, str], options: dict[str, Any]) -> Outcome:
    done = subprocess.run(
        line,
        env=env,
        stdin=None if "input" in options else subprocess.DEVNULL,
        capture_output=True,
        timeout=options.pop("time_limit", TIME_LIMIT),
        check=False,
        **options,
    )
    return Outcome(
        done.returncode,
        done.stdout.decode("utf-8", "surrogateescape"),
        done.stderr.decode("utf-8", "surrogateescape"),
    )


def marked_line(source: Path, marker: str = "# <- here") -> int:
    """The number of the only line that carries the marker."""
    numbers = [
        n for n, text in enumerate(source.read_text(encoding="utf-8").splitlines(), 1) if marker in text
    ]
    assert len(numbers) == 1, f"{source}: {len(numbers)} lines are marked with {marker!r}"
    return numbers[0]


def write_program(path: Path, text: str) -> Path:
    """A program of a test, as a file of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def only_root(outcome: Outcome) -> dict[str, Any]:
    """The one finding that the run must have produced."""
    assert outcome.report is not None, f"no report was written; stderr:\n{outcome.stderr}"
    assert outcome.report["verdict"] == "fault", outcome.stderr
    findings = outcome.report["findings"]
    assert [f["role"] for f in findings] == ["root"], json.dumps(findings, indent=1)
    return findings[0]
