"""Every architecture of transformers that can be made small here is clean. With TRAPLINE_LONG=1 all of
them, else a
tenth, always the same one."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from checking import report

pytest.importorskip("transformers", reason="transformers is not there: no family of models was made")

HERE = Path(__file__).parent
LONG = os.environ.get("TRAPLINE_LONG") == "1"
# Shared layers, stacks of convolutions, several lists of layers, bounds that are infinite: seen to go
# wrong once.
ALWAYS = [
    "albert",
    "canine",
    "gemma4_audio",
    "hubert",
    "mask2former",
    "mllama",
    "rembert",
    "swin",
    "wavlm",
    "yolos",
]


def families() -> list[str]:
    words = [sys.executable, str(HERE / "families.py"), "--list"]
    every = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return every if LONG else sorted({*random.Random(18).sample(every, len(every) // 10), *ALWAYS} & {*every})


def test_sound_models_of_every_family_are_clean(tmp_path: Path) -> None:
    chosen = families()
    made: set[str] = set()
    for at in range(0, len(chosen), 40):
        words = [sys.executable, str(HERE / "families.py"), str(tmp_path), *chosen[at : at + 40]]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=1200)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert rows, done.stderr[-2000:]
        for row in rows:
            if not row["made"]:
                continue
            made.add(row["family"])
            clean = report("model", row["folder"], exit_code=0)
            assert clean["findings"] == [] and clean["verdict"] == "clean", row["class"]
    assert len(made) >= len(chosen) // 2, f"{len(made)} of {len(chosen)} families could be made"
