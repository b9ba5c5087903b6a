"""The examples whose mistake lies in a file: what `trapline check` says of what they write."""

import subprocess
import sys
from pathlib import Path

import pytest
from checking import ROOT, only_finding, report

pytest.importorskip("torch")
pytest.importorskip("safetensors")


def write(example: str, folder: Path, *options: str) -> None:
    subprocess.run([sys.executable, str(ROOT / "examples" / example), str(folder), *options], check=True)


def test_checkpoint_nan(tmp_path: Path) -> None:
    write("checkpoint_nan.py", tmp_path)
    findings = report("finite", tmp_path / "regressor.pt", exit_code=1)["findings"]
    assert {one["code"] for one in findings} == {"TL109"}
    assert {one["argument"] for one in findings} == {"0.weight", "0.bias", "2.weight", "2.bias"}
    write("checkpoint_nan.py", tmp_path, "--fixed")
    report("finite", tmp_path / "regressor.pt", exit_code=0)


def test_checkpoint_half_copied(tmp_path: Path) -> None:
    write("checkpoint_half_copied.py", tmp_path)
    finding = only_finding("model", tmp_path)
    assert finding["code"] == "TL204"
    assert "model-00001-of-00002.safetensors" in finding["summary"]
    write("checkpoint_half_copied.py", tmp_path, "--fixed")
    report("model", tmp_path, exit_code=0)
