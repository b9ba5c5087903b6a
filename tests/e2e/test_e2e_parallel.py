"""Data parallel programs of two processes on gloo, and loader workers of every kind: as without the guard."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import e2e_runner as runner
import pytest

RANKS = """
import hashlib, os, sys
import torch
import torch.distributed as dist
import torch.nn.functional as F

KIND, BROKEN = sys.argv[1], sys.argv[2] == "broken"
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Embedding(12, 8), torch.nn.Linear(8, 6))
if KIND == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model)
elif KIND == "fsdp":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (2,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ids = torch.arange(12).view(2, 6)[rank]
for step in range(3):
    if BROKEN and rank == 1 and step == 2:
        ids = ids + torch.tensor([0, 0, 0, 9, 0, 0])
    scores = model(ids)  # <- here
    loss = F.cross_entropy(scores, ids % 6)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
digest = hashlib.sha256()
for name, weight in model.state_dict().items():
    whole = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
    digest.update(whole.detach().numpy().tobytes())
open(os.path.join(sys.argv[3], f"weights-{rank}"), "w").write(digest.hexdigest())
dist.barrier()
os._exit(0)  # gloo's threads now and then abort the end of the interpreter, without the guard as well
"""

LOADER = """
import sys
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self):
        self.table = torch.linspace(0, 1, 30).view(10, 3)
    def __len__(self):
        return 10
    def __getitem__(self, index):
        return F.embedding(torch.tensor([index, 9 - index]), self.table) * torch.rand(())

if __name__ == "__main__":
    torch.manual_seed(1)
    for batch in DataLoader(Rows(), batch_size=5, num_workers=2, multiprocessing_context=sys.argv[1]):
        print(batch.numpy().tobytes().hex())
"""


def command(script: Path, *arguments: object) -> list[object]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torchrun = Path(sys.executable).parent / "torchrun"
    place = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", port]
    return [torchrun, *place, script, *arguments]


def environment() -> dict[str, str]:
    return runner.environment(GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_weights_are_the_same(tmp_path: Path, kind: str) -> None:
    script = runner.write_program(tmp_path / "ranks.py", RANKS)
    weights = []
    for name in ("without", "with"):
        (tmp_path / name).mkdir()
        line = command(script, kind, "good", tmp_path / name)
        if name == "with":
            outcome = runner.trapline_json(tmp_path / "out", line, env=environment())
            assert outcome.report is None or outcome.report["findings"] == []
        else:
            outcome = runner.plain(line, env=environment())
        assert outcome.returncode == 0, outcome.stderr
        weights.append([(tmp_path / name / f"weights-{rank}").read_text() for rank in range(2)])
    assert weights[0] == weights[1]
    assert len(weights[0][0]) == 64


def test_the_bad_rank_is_named_under_fsdp(tmp_path: Path) -> None:
    script = runner.write_program(tmp_path / "ranks.py", RANKS)
    outcome = runner.trapline_json(
        tmp_path / "out", command(script, "fsdp", "broken", tmp_path), env=environment()
    )
    assert outcome.report is not None, outcome.stderr
    root = next(f for f in outcome.report["findings"] if f["role"] == "root")
    assert root["code"] == "TL103"
    assert root["process"]["rank"] == 1
    assert root["element"]["index"] == [3]
    assert root["element"]["value"] == 18
    assert root["valid"]["max"] == 11
    assert root["origin"]["line"] == runner.marked_line(script)
    assert outcome.returncode == 1


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_loader_workers_give_the_same_batches(tmp_path: Path, method: str) -> None:
    script = runner.write_program(tmp_path / "loader.py", LOADER)
    without = runner.plain([runner.PYTHON, script, method])
    outcome = runner.trapline([], [runner.PYTHON, script, method])
    assert (outcome.returncode, outcome.stdout) == (0, without.stdout), outcome.stderr
    assert len(without.stdout.splitlines()) == 2
