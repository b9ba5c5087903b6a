"""The programs of ``make gpu-proof`` run without a GPU too, on the CPU and without writing a record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import gpu_proof  # noqa: E402


@pytest.mark.parametrize("part", [part for part in gpu_proof.PARTS if part != "programs"])  # it needs CUDA
def test_every_case_is_right_or_left_out_for_a_reason(part):
    done = subprocess.run(
        [sys.executable, f"tests/gpu/proof_{part}.py", "--device", "cpu"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    cases = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [case for case in cases if case["ok"] is False] == [], done.stderr[-2000:]
    assert done.returncode == 0, done.stderr[-2000:]
    assert {case["detail"] for case in cases if case["ok"] is None} <= {"needs CUDA"}
    assert any(case["ok"] for case in cases)


def test_a_guard_that_is_off_is_said():
    """Without a guard the programs prove nothing: they must say so and fail."""
    done = subprocess.run(
        [sys.executable, "tests/gpu/proof_host.py", "--device", "cpu"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "TRAPLINE_OFF": "1"},
    )
    assert done.returncode == 1
    assert "the guard is not active" in done.stderr


def test_no_record_without_a_gpu(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu_proof, "PARTS", ())
    monkeypatch.setattr(gpu_proof.Proof, "overhead", lambda self: [])
    monkeypatch.setattr(sys, "argv", ["gpu_proof.py", "--device", "cpu", "--out", str(tmp_path / "proof")])
    assert gpu_proof.main() == 0
    assert "no record" in capsys.readouterr().out
    assert not (tmp_path / "proof").exists()


def test_the_table_counts_and_names_what_is_wrong():
    record = {
        "date": "2026-01-02",
        "commit": "abc",
        "seconds": 61.0,
        "machine": {"gpu": "NVIDIA X", "torch": "2.9.0", "driver": "5", "cuda": "13.0", "python": "3.12.3"},
        "overhead": [
            {
                "model": "mlp",
                "step_ms": 1.5,
                "guard": 1.004,
                "guard_quartiles": [1.0, 1.01],
                "skip": 1.006,
                "watch": 1.012,
                "launch_blocking": 1.6,
            }
        ],
        "cases": [
            {"part": "host", "case": "a", "ok": True, "detail": None},
            {"part": "host", "case": "b", "ok": False, "detail": "x|y"},
            {"part": "host", "case": "c", "ok": None, "detail": "needs CUDA"},
        ],
    }
    page = gpu_proof.table(record)
    assert "1 right, 1 wrong, 1 left out; 61 s" in page
    assert "| mlp | 1.50 | 1.0040 | 1.0000 to 1.0100 | 1.0060 | 1.0120 | 1.60 |" in page
    assert "| host | b | **wrong** | x\\|y |" in page
    assert gpu_proof.file_stem(record["machine"]) == "nvidia-x-torch2.9.0"
