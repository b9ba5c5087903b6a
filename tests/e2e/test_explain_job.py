"""`trapline explain` on what real programs leave: the log of a crash, the folder of a guarded run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from e2e_runner import EXAMPLES, PYTHON, TRAPLINE, environment, marked_line, plain, trapline

CASES = {
    "labels_one_based.py": {"label_out_of_range", "num_classes_mismatch"},
    "tokenizer_too_large.py": {"embedding_index_out_of_range"},
    "gather_index.py": {"index_out_of_range"},
    "linear_shape.py": {"shape_mismatch"},
}


def explain(*words: object) -> dict[str, Any]:
    done = subprocess.run(
        [TRAPLINE, "explain", "--format", "json", *map(str, words)],
        capture_output=True,
        check=False,
        env=environment(),
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("example", CASES)
def test_log_of_a_crash_on_the_cpu(example: str, tmp_path: Path) -> None:
    """On the CPU the exception is synchronous: the log names the cause and the line."""
    crashed = plain([PYTHON, EXAMPLES / example])
    assert crashed.returncode == 1
    log = tmp_path / "train.log"
    log.write_text(crashed.stdout + crashed.stderr, encoding="utf-8")
    root = explain(log)["findings"][0]
    assert {root["cause"], *root.get("also", [])} & CASES[example]
    assert root["device_assert"] is False  # nothing ran on a device
    assert Path(root["origin"]["file"]).name == example
    assert root["origin"]["line"] == marked_line(EXAMPLES / example)


def test_report_folder_of_a_guarded_run(tmp_path: Path) -> None:
    """What the guarded process saw stays proven when a log of the same job lies next to it."""
    example = "labels_one_based.py"
    reports = tmp_path / "reports"
    guarded = trapline(["--report", str(reports)], [PYTHON, EXAMPLES / example])
    (reports / "rank0.log").write_text(guarded.stdout + guarded.stderr, encoding="utf-8")
    report = explain(reports)
    root = report["findings"][0]
    assert root["certainty"] == "proven" and root["cause"] in CASES[example]
    assert [finding for finding in report["findings"][1:] if finding["role"] == "root"] == []
