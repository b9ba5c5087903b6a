"""Hostile, changing and odd files before `explain` and `check`: a verdict or one line, never a crash, a hang, an
escape on the terminal or a false clean. A quarter runs; `TRAPLINE_LONG=1` runs all."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from pathlib import Path

import pytest
from reading_rows import DATA, EXPLAIN, Row
from test_explain import ASSERTION, CLEAN_LOG, TRAPLINE

EVERY = [("explain", row) for row in EXPLAIN] + [("check", row) for row in DATA]
EXIT = {"clean": 0, "fault": 1, "unknown": 3}


def chosen() -> list[tuple[str, Row]]:
    long = os.environ.get("TRAPLINE_LONG") == "1"
    return EVERY if long else random.Random(19).sample(EVERY, len(EVERY) // 4)


@pytest.mark.parametrize(("command", "row"), chosen(), ids=lambda one: getattr(one, "name", one))
def test_reading(command: str, row: Row, tmp_path: Path) -> None:
    (tmp_path / "fault.txt").write_text(ASSERTION)
    (tmp_path / "fine.txt").write_text(CLEAN_LOG)
    (tmp_path / "here").mkdir()
    line = row.line.replace("FAULT", f"{tmp_path}/fault.txt").replace("FINE", f"{tmp_path}/fine.txt")
    line = re.sub(r"TOOL (explain|check \w+)", rf"{TRAPLINE} \1 --format json", line)
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path / "here", capture_output=True, timeout=240, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode in (0, 1, 2, 3), (done.returncode, done.stderr[-600:])
    assert not {0x07, 0x1B, 0x9B} & set(said.decode(errors="replace").encode("utf-16-le")[::2]), said[-600:]
    assert row.words in said.decode(errors="replace"), said[-600:]
    if row.verdict == "*":
        assert done.returncode in (0, 1, 2, 3)
    elif row.verdict == "":
        assert done.stdout.strip() == b"" and done.returncode in (1, 2), said[-600:]
    else:
        assert json.loads(done.stdout)["verdict"] == row.verdict, said[-900:]
        assert done.returncode == EXIT[row.verdict] or done.returncode == 2, said[-600:]
