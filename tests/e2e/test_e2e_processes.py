"""The guard is in every Python process below `trapline run` that imports torch."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import e2e_runner as runner
import pytest
from e2e_cases import CASES
from test_e2e_examples import check_finding, load_example

RANKS = """
import os
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    labels = torch.tensor([0, 1, 2, 2])
    if rank == 1 and step == 2:
        labels[1] = 5
    loss = F.cross_entropy(model(torch.randn(4, 4)), labels)  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
"""

IN_A_WORKER = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset

class Lookup(Dataset):
    def __init__(self):
        self.table = torch.arange(10.0)
        self.keys = torch.tensor([1, 2, 3, 40, 5, 6])
    def __len__(self):
        return 6
    def __getitem__(self, index):
        return self.table[self.keys[index : index + 1]]  # <- here

if __name__ == "__main__":
    for batch in DataLoader(Lookup(), batch_size=2, num_workers=2, multiprocessing_context=sys.argv[1]):
        print(batch.shape, flush=True)
"""

MODULE = """
import torch
import torch.nn.functional as F

def main():
    F.embedding(torch.tensor([0, 9]), torch.zeros(9, 2))  # <- here

if __name__ == "__main__":
    main()
"""

PARENT = """
import subprocess, sys
sys.exit(subprocess.call([sys.executable, sys.argv[1]]))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_B5_data_set_index_with_worker_processes(tmp_path: Path, method: str) -> None:
    case = next(c for c in CASES if c.name == "workers")
    outcome = runner.trapline_json(tmp_path, [runner.PYTHON, runner.EXAMPLES / case.file, "--start", method])
    finding = runner.only_root(outcome)
    check_finding(case, finding)
    assert case.truth is not None
    case.truth(load_example(case).build_dataset(False), finding)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_B5_a_fault_inside_a_worker_process(tmp_path: Path, method: str) -> None:
    script = runner.write_program(tmp_path / "lookup.py", IN_A_WORKER)
    outcome = runner.trapline_json(tmp_path / "out", [runner.PYTHON, script, method])
    finding = runner.only_root(outcome)
    assert finding["code"] == "TL105"
    assert (finding["origin"]["file"], finding["origin"]["line"]) == (str(script), runner.marked_line(script))
    assert finding["element"]["value"] == 40
    assert (finding["valid"]["min"], finding["valid"]["max"]) == (-10, 9)
    assert outcome.returncode == 1
    assert outcome.stdout.startswith("torch.Size([2, 1])")


def test_A12_one_bad_rank_under_torchrun(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "ranks.py", RANKS)
    torchrun = Path(sys.executable).parent / "torchrun"
    command = [
        torchrun,
        "--nproc-per-node",
        "2",
        "--master-addr",
        "127.0.0.1",
        "--master-port",
        free_port(),
        script,
    ]
    env = runner.environment(GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    outcome = runner.trapline_json(tmp_path / "out", command, env=env)
    assert outcome.report is not None, outcome.stderr
    roots = [f for f in outcome.report["findings"] if f["role"] == "root"]
    assert len(roots) == 1
    assert outcome.report["findings"][0] == roots[0]
    assert roots[0]["code"] == "TL101"
    assert roots[0]["process"]["rank"] == 1
    assert roots[0]["element"]["index"] == [1]
    assert roots[0]["element"]["value"] == 5
    assert roots[0]["origin"]["line"] == runner.marked_line(script)
    assert outcome.returncode == 1


def test_python_dash_m(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "trainer" / "loop.py", MODULE)
    runner.write_program(tmp_path / "trainer" / "__init__.py", "")
    outcome = runner.trapline_json(tmp_path / "out", [runner.PYTHON, "-m", "trainer.loop"], cwd=tmp_path)
    finding = runner.only_root(outcome)
    assert finding["code"] == "TL103"
    assert (finding["origin"]["file"], finding["origin"]["line"]) == (str(script), runner.marked_line(script))
    assert finding["origin"]["function"] == "main"
    assert outcome.returncode == 1


def test_a_child_of_a_program_that_never_imports_torch(tmp_path: Path) -> None:
    parent = runner.write_program(tmp_path / "parent.py", PARENT)
    child = runner.write_program(tmp_path / "child.py", MODULE)
    outcome = runner.trapline_json(tmp_path / "out", [runner.PYTHON, parent, child])
    assert runner.only_root(outcome)["origin"]["file"] == str(child)
    assert outcome.returncode == 1
    guards = list((tmp_path / "out" / "kept").glob("guard-*.json"))
    assert len(guards) == 1  # the parent wrote nothing


def test_the_users_own_sitecustomize_still_runs(tmp_path: Path) -> None:
    runner.write_program(tmp_path / "site" / "sitecustomize.py", "import sys; sys.users_own = 'here'\n")
    script = runner.write_program(tmp_path / "main.py", "import sys; print(sys.users_own)" + MODULE)
    env = runner.environment(PYTHONPATH=str(tmp_path / "site"))
    outcome = runner.trapline_json(tmp_path / "out", [runner.PYTHON, script], env=env)
    assert outcome.stdout == "here\n"
    assert runner.only_root(outcome)["code"] == "TL103"


STARTED_ANEW = """
import os
import sys
import torch
import torch.nn.functional as F

try:
    F.embedding(torch.tensor([int(sys.argv[1])]), torch.zeros(9, 2))
except IndexError:
    if sys.argv[1] == "10":
        os.execv(sys.executable, [sys.executable, __file__, "11"])
"""


def test_a_program_that_starts_itself_anew_keeps_both_findings(tmp_path: Path) -> None:
    """Its pid stays the same, as that of the first processes of two containers is."""
    script = runner.write_program(tmp_path / "anew.py", STARTED_ANEW)
    outcome = runner.trapline_json(tmp_path / "reports", [runner.PYTHON, script, "10"])
    assert outcome.returncode == 0, outcome.stderr
    said = sorted(report["findings"][0]["summary"].split(",")[0] for report in outcome.written)
    assert said == ["embedding: input[0] is 10", "embedding: input[0] is 11"]
