"""A matrix of machines, launchers, programs and users: a guarded program ends as it would alone, its finding is
told, and nothing is left behind. A tenth of it runs; `TRAPLINE_LONG=1` runs all."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import e2e_runner as runner
import matrix_rows
import matrix_starts
import pytest
from matrix_rows import Row

LONG = os.environ.get("TRAPLINE_LONG") == "1"
EVERY = [
    *matrix_rows.FILES,
    *matrix_rows.LIMITS,
    *matrix_rows.CLOCKS,
    *matrix_rows.WORDS,
    *matrix_starts.STARTS,
    *matrix_starts.REPORTS,
    *matrix_starts.SIGNALS,
]
NOT_ALLOWED = re.compile(
    r"Operation not permitted|must be superuser|cannot set|[Pp]ermission denied|command not found"
    r"|unshare failed|No such file or directory.*cgroup"
)


def chosen() -> list[Row]:
    return EVERY if LONG else random.Random(19).sample(EVERY, len(EVERY) // 10)


def run(row: Row, folder: Path, guarded: bool) -> tuple[Any, Optional[dict[str, Any]], str]:
    """The exit code and the output, the report, and what stood on stderr."""
    (folder / "tmp").mkdir(parents=True)
    for name, text in matrix_rows.PROGRAMS.items():
        (folder / name).write_text(text)
    tool = str(runner.TRAPLINE)
    both = "env" if not guarded else f"{tool} run --format json"
    # What a row says of the folder of reports stands before its own words.
    line = re.sub(r"REPORT=(\S+) RUN", r"RUN --report \1 --" if guarded else "RUN", row.line)
    line = re.sub(r"(?<!TOOL)\bRUN(?! --report)\b", "RUN --" if guarded else "RUN", line)
    if not guarded:
        line = re.sub(r"TOOLRUN -o \S+ --", "env", line)
    line = line.replace("TOOLRUN", f"{tool} run --format json")
    line = re.sub(r"\bRUN\b", f"{both} -o {folder}/report.json" if guarded else both, line)
    line = re.sub(r"\bPY\b", sys.executable, line)
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=runner.environment(TMPDIR=str(folder / "tmp"), PYTHONPATH=""),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=180,
        start_new_session=True,
        check=False,
    )
    err = done.stderr.decode(errors="replace")
    report = folder / "report.json"
    said = None
    if report.is_file() and report.stat().st_size:
        said = json.loads(report.read_text())
    elif guarded and "{" in err and '"findings"' in err:
        # Where the file could not be written it is on stderr.
        said = json.JSONDecoder().raw_decode(err, err.rindex('{\n  "'))[0] if '{\n  "' in err else None
    code = 128 - done.returncode if done.returncode < 0 else done.returncode
    return (code, done.stdout), said, err


@pytest.mark.parametrize("row", chosen(), ids=lambda row: f"{row.area}: {row.name}"[:90])
def test_matrix(tmp_path: Path, row: Row) -> None:
    alone, _, err = run(row, tmp_path / "alone", guarded=False)
    if alone[0] == 125 or (alone[0] != 1 and NOT_ALLOWED.search(err)):
        pytest.skip(f"not to be had here: {err.strip()[-80:]}")
    ended, said, err = run(row, tmp_path / "guarded", guarded=True)
    if row.exit is None:
        assert ended == alone, err[-2000:]
    else:
        assert ended[0] == row.exit, err[-2000:]
    if row.verdict == "none":
        assert said is None or said["findings"], err[-2000:]
    else:
        assert said is not None, err[-2000:]
        codes = [finding["code"] for finding in said["findings"]]
        assert said["verdict"] == row.verdict, (codes, said.get("notes"), err[-2000:])
        assert (codes[:1] or [None])[0] == row.code, (codes, err[-2000:])
    left = [name for name in os.listdir(tmp_path / "guarded" / "tmp") if name.startswith("trapline-")]
    assert left == [], left
    shutil.rmtree(tmp_path / "guarded", ignore_errors=True)
