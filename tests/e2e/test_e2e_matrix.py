"""A matrix of machines, launchers, programs and users: a guarded program ends as it would alone, its finding
is told, and nothing is left behind. A tenth of it runs; `TRAPLINE_LONG=1` runs all.

In the tables (matrix/*.rows) RUN stands for `trapline run ...` or, for the twin that shows how the program
ends alone, for nothing; RUN(...) gives it options. PY is Python. Each runs in a folder of its own,
that holds the programs and the empty folder `tmp`. Expected is the finding's code or the verdict, then
`exit N` where that is not the twin's by design.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import e2e_runner as runner
import pytest

sys.path.insert(0, str(runner.REPO / "tests"))
from shell_rows import Row, read_rows

LONG = os.environ.get("TRAPLINE_LONG") == "1"
PYTHON = os.environ.get("TRAPLINE_TEST_PYTHON", sys.executable)  # another one, with its own torch
TABLES = Path(__file__).parent / "matrix"
EVERY = [row for file in sorted(TABLES.glob("*.rows")) for row in read_rows(file)]
NOT_HERE = 125  # an entry's own word that the machine does not allow it
NOT_ALLOWED = re.compile(
    r"Operation not permitted|must be superuser|cannot set|[Pp]ermission denied|command not found"
    r"|unshare failed|env: .faketime.: No such file"
)


def chosen() -> list[Row]:
    return EVERY if LONG else random.Random(19).sample(EVERY, len(EVERY) // 10)


def end(row: Row, folder: Path, tool: Optional[str]) -> tuple[int, bytes, str]:
    """The exit code and both streams; without `tool` of the twin."""
    shutil.copytree(TABLES / "programs", folder)
    (folder / "tmp").mkdir()

    def prefix(options: str) -> str:
        own = "" if "-o " in options else f"-o {folder}/report.json"
        return f"{tool} run --format json {own} {options} --" if tool else "env"

    line = re.sub(r"\bRUN(?:\((.*?)\))?(?=\s)", lambda found: prefix(found[1] or ""), row.script)
    line = re.sub(r"\bPY\b", PYTHON, line)
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
    code = 128 - done.returncode if done.returncode < 0 else done.returncode
    return code, done.stdout, done.stderr.decode(errors="replace")


def report_of(folder: Path, err: str) -> Optional[dict[str, Any]]:
    """Where the file could not be written the report is on stderr."""
    file = folder / "report.json"
    if file.is_file() and file.stat().st_size:
        return json.loads(file.read_text())
    begin = err.find('{\n  "command"')
    return None if begin < 0 else json.JSONDecoder().raw_decode(err, begin)[0]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Its path is short: one of a socket has room for 107 bytes, and Python's own are long."""
    path = Path(tempfile.mkdtemp(prefix="row-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("row", chosen(), ids=str)
def test_matrix(folder: Path, row: Row) -> None:
    alone = end(row, folder / "alone", None)
    if alone[0] == NOT_HERE or (alone[0] != 1 and NOT_ALLOWED.search(alone[2])):
        pytest.skip(f"not to be had here: {alone[2].strip()[-80:]}")
    code, out, err = end(row, folder / "guarded", str(runner.TRAPLINE))
    what, *exit_code = row.expected
    if exit_code:
        assert code == int(exit_code[1]), err[-2000:]
    else:
        assert (code, out) == alone[:2], err[-2000:]
    said = report_of(folder / "guarded", err)
    if what == "none":
        assert said is None, said
    else:
        assert said is not None, err[-2000:]
        found = [finding["code"] for finding in said["findings"]] or [said["verdict"]]
        assert found[0] == what, (said.get("notes"), err[-2000:])
    assert list((folder / "guarded" / "tmp").glob("trapline-*")) == []
