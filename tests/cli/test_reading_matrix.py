"""Hostile, changing and odd files before `explain` and `check`: a verdict or one line, never a crash, a hang,
an escape on the terminal or a false clean. A quarter runs; `TRAPLINE_LONG=1` runs all.

In the tables (reading/*.rows) TOOL is Trapline, FAULT a log with a device-side assertion, FINE one without a
fault. Expected is the verdict ("any": it depends on the moment), then words that the report or stderr holds.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_explain import ASSERTION, CLEAN_LOG, TRAPLINE

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from shell_rows import Row, read_rows  # noqa: E402

EVERY = [row for file in sorted((HERE / "reading").glob("*.rows")) for row in read_rows(file)]
EXIT = {"clean": (0,), "fault": (1, 2), "unknown": (2, 3)}  # 2: something could not be read


def chosen() -> list[Row]:
    long = os.environ.get("TRAPLINE_LONG") == "1"
    return EVERY if long else random.Random(19).sample(EVERY, len(EVERY) // 4)


@pytest.mark.parametrize("row", chosen(), ids=str)
def test_reading(row: Row, tmp_path: Path) -> None:
    (tmp_path / "fault.txt").write_text(ASSERTION)
    (tmp_path / "fine.txt").write_text(CLEAN_LOG)
    (tmp_path / "here").mkdir()
    line = re.sub(r"TOOL (explain|check \w+)", rf"{TRAPLINE} \1 --format json", row.script)
    line = line.replace("FAULT", f"{tmp_path}/fault.txt").replace("FINE", f"{tmp_path}/fine.txt")
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path / "here", capture_output=True, timeout=240, check=False
    )
    said = (done.stdout + done.stderr).decode(errors="replace")
    verdict, *words = row.expected
    assert not {"\x07", "\x1b", "\x9b"} & set(said), said[-600:]
    assert " ".join(words) in said, said[-600:]
    if verdict == "any":
        assert done.returncode in (0, 1, 2, 3), said[-600:]
    elif verdict == "none":
        assert done.stdout == b"" and done.returncode == 1, said[-600:]
    else:
        assert (json.loads(done.stdout)["verdict"], done.returncode in EXIT[verdict]) == (verdict, True), (
            said[-900:]
        )
