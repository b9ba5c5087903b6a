"""The report's source line: files that changed, vanished or have unusual names."""

from __future__ import annotations

from pathlib import Path

import e2e_runner as runner
import pytest

REWRITTEN = """
import sys
import torch
import torch.nn.functional as F

def spoil(text):
    with open(__file__, "w") as file:
        file.write(text)

def train():
    labels = torch.tensor([0, 7])
    loss = F.cross_entropy(torch.zeros(2, 3), labels)  # <- here
    return loss

spoil(sys.argv[1])
train()
"""

OTHER_TEXT = "".join(f"wrong_line_{number} = {number}\n" for number in range(60))
FAULT = "import torch\nx = torch.arange(6)\nx[torch.tensor([2, 6])]  # <- here\n"


@pytest.mark.parametrize("text", [OTHER_TEXT, "", "x"], ids=["other", "empty", "shorter"])
def test_a_script_that_changes_its_own_file(tmp_path: Path, text: str) -> None:
    script = runner.write_program(tmp_path / "changing.py", REWRITTEN)
    line = runner.marked_line(script)
    original = REWRITTEN.splitlines()[line - 1].strip()
    outcome = runner.trapline_json(tmp_path / "out", [runner.PYTHON, script, text])
    origin = runner.only_root(outcome)["origin"]
    assert (origin["file"], origin["line"], origin["function"]) == (str(script), line, "train")
    assert origin.get("code", "").strip() in ("", original)  # never a line that was not the one that ran


def test_a_script_that_deletes_its_own_file_still_gets_a_text_report(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "gone.py", "import os\nos.unlink(__file__)\n" + FAULT)
    line = runner.marked_line(script)
    outcome = runner.trapline([], [runner.PYTHON, script])
    assert outcome.returncode == 1
    assert f"gone.py:{line}" in outcome.stderr.partition("TL105")[2]


def test_spaces_and_unicode_in_paths(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "mon modèle" / "entraînement 訓練.py", FAULT)
    outcome = runner.trapline_json(tmp_path / "le rapport é", [runner.PYTHON, script])
    finding = runner.only_root(outcome)
    assert finding["origin"]["file"] == str(script)
    assert finding["origin"]["line"] == 3
    text = runner.trapline([], [runner.PYTHON, script], cwd=script.parent).stderr
    assert "entraînement 訓練.py:3" in text


def test_python_dash_c_and_standard_input(tmp_path: Path) -> None:
    from_c = runner.trapline_json(tmp_path / "c", [runner.PYTHON, "-c", FAULT])
    assert runner.only_root(from_c)["origin"]["line"] == 3
    piped = runner.trapline_json(tmp_path / "stdin", [runner.PYTHON, "-"], input=FAULT.encode())
    assert runner.only_root(piped)["origin"]["line"] == 3


def test_C7_last_operations_are_shown_with_v(tmp_path: Path) -> None:
    script = runner.write_program(
        tmp_path / "ring.py",
        "import torch\nt = torch.zeros(50, 4)\nfor i in range(30):\n"
        "    t.index_select(0, torch.tensor([i, i + 1]))\nt[torch.tensor([49, 50])]  # <- here\n",
    )
    short = runner.trapline([], [runner.PYTHON, script]).stderr
    long = runner.trapline(["-v"], [runner.PYTHON, script]).stderr
    assert "index_select" not in short.partition("TL105")[2]
    report = long.partition("TL105")[2]
    assert 10 <= report.count("index_select") <= 20
    assert "50, 4" in report
