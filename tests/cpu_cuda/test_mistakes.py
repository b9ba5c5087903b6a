"""`trapline run --cpu` over the programs of mistakes.py: PyTorch's words, and a report with the line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from mistakes import HEAD, MISTAKES

# PyTorch's words are all there is: no row of the catalogue knows them yet.
WITHOUT_A_REPORT = {
    "pinned memory of a batch on the device",
    "a GPU that is not there",
    "CUDA in a worker",
    "what CUDA lacks",
}


def run(program, tmp_path, *settings):
    script = tmp_path / "program.py"
    script.write_text(program)
    environment = {**os.environ, **dict(setting.split("=") for setting in settings)}
    environment.pop("TRAPLINE_CPU_DEVICES") if not settings else None
    command = [
        f"{os.environ['TRAPLINE_BUILD_DIR']}/bin/trapline",
        "run",
        "--cpu",
        "--",
        sys.executable,
        script,
    ]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_devices(name, tmp_path):
    source, words, *settings = MISTAKES[name]
    program = HEAD + source
    ended = run(program, tmp_path, *settings)
    assert ended.returncode == 1, ended.stderr
    assert words in ended.stderr
    if name in WITHOUT_A_REPORT:
        return
    line = next(n for n, text in enumerate(program.splitlines(), 1) if "# here" in text)
    report = ended.stderr[ended.stderr.rindex("error[TL") :]
    assert f"program.py:{line} in " in " ".join(report.split()), ended.stderr  # long paths are wrapped


def test_a_program_of_two_ranks(tmp_path):
    ranks = os.path.join(os.path.dirname(__file__), "ranks.py")
    command = [os.environ["TRAPLINE_BUILD_DIR"] + "/bin/trapline", "run", "--cpu", "--", sys.executable]
    command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", ranks]
    environment = {key: value for key, value in os.environ.items() if key != "TRAPLINE_CPU_DEVICES"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    said = "[3.0, 3.0] [0.0, 0.0, 1.0, 1.0] 5.0 [{'rank': 0}, {'rank': 1}] 2\n"
    assert (done.returncode, done.stdout) == (0, said), done.stderr
