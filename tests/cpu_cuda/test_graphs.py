"""CUDA graphs on the device of ``--cpu``: a capture does nothing, and each replay does it all again."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from conftest import ROOT
from torch import nn
from trapline._cpu import backend


def test_a_capture_does_nothing_and_a_replay_everything():
    x = torch.zeros(3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        x.add_(1)
        y = x * 2
        total = torch.zeros((), device="cuda") + y.sum()
    assert not torch.cuda.is_current_stream_capturing() and x.tolist() == [0.0] * 3
    for expected in (1.0, 2.0, 3.0):
        graph.replay()
        assert x.tolist() == [expected] * 3 and total.item() == 6 * expected
    x.fill_(10.0)
    graph.replay()
    assert y.tolist() == [22.0] * 3


def test_a_graph_copies_from_where_the_program_writes():
    host, x = torch.zeros(2).pin_memory(), torch.zeros(2, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(host, non_blocking=True)
    host.fill_(4.0)
    graph.replay()
    assert x.tolist() == [4.0, 4.0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.memory = nn.Embedding(12, 8), nn.GRU(8, 8, batch_first=True)
        self.norm, self.drop, self.head = nn.LayerNorm(8), nn.Dropout(0.2), nn.Linear(8, 5)

    def forward(self, ids):
        rows = self.memory(self.words(ids))[0]
        seen = F.scaled_dot_product_attention(rows, rows, rows)
        return self.head(self.drop(self.norm(seen[:, -1])))


def trained(captured):
    torch.manual_seed(5)
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = [(torch.randint(0, 12, (6, 4)).cuda(), torch.randint(0, 5, (6,)).cuda()) for _ in range(6)]
    ids, labels = batches[0][0].clone(), batches[0][1].clone()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(ids), labels)
        loss.backward()
        optimizer.step()
        return loss

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    if captured:
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            loss = step()
    losses = []
    for new_ids, new_labels in batches:
        ids.copy_(new_ids)
        labels.copy_(new_labels)
        if captured:
            graph.replay()
        else:
            loss = step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in model.parameters()]


def test_a_captured_training_step_is_the_step():
    (losses, weights), (other_losses, other_weights) = trained(True), trained(False)
    assert losses == other_losses and len(set(losses)) == 6
    assert all(torch.equal(a, b) for a, b in zip(weights, other_weights))


def test_graphed_callables():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).cuda()
    x = torch.randn(5, 4, device="cuda")
    plain = copy.deepcopy(model)
    expected = plain(x)
    expected.sum().backward()
    graphed = torch.cuda.make_graphed_callables(model, (torch.randn(5, 4, device="cuda"),))
    out = graphed(x)
    out.sum().backward()
    assert torch.equal(out, expected)
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), plain.parameters()))


def test_what_a_capture_forbids():
    x = torch.ones(3, device="cuda")
    for wait in (
        lambda: x.sum().item(),
        x.nonzero,
        torch.cuda.synchronize,
        x.cpu,
        lambda: x.copy_(torch.ones(3)),
    ):
        graph = torch.cuda.CUDAGraph()
        words = "operation not permitted when stream is capturing"
        with pytest.raises(RuntimeError, match=words), torch.cuda.graph(graph):
            wait()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        torch.cuda.CUDAGraph().replay()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        torch.cuda.CUDAGraph().capture_begin()
    assert (x + 1).tolist() == [2.0] * 3


def test_a_bad_index_in_a_replay_loses_the_context(capfd):
    table, ids = torch.ones(4, 2, device="cuda"), torch.zeros(3, dtype=torch.long, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rows = F.embedding(ids, table)
    ids.fill_(4)
    graph.replay()
    assert "Assertion `srcIndex < srcSelectDimSize` failed." in capfd.readouterr().err
    assert backend.device.context_lost()
    with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
        rows.sum().item()


SCRIPT = """
import torch, torch.nn.functional as F
table = torch.ones(4, 2, device="cuda")
ids = torch.full((3,), 99, device="cuda")  # what a capture finds in memory is no value yet
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    rows = F.embedding(ids, table)
ids.fill_(1)
graph.replay()
print(rows.sum().item())
ids[2] = 7
graph.replay()  # <- bad
"""


def test_the_guard_looks_at_the_replays(tmp_path):
    (tmp_path / "graph.py").write_text(SCRIPT)
    binary = os.path.join(os.environ["TRAPLINE_BUILD_DIR"], "bin", "trapline")
    command = [binary, "run", "--cpu", "--", sys.executable, str(tmp_path / "graph.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout) == (1, "6.0\n"), done.stderr
    line = 1 + SCRIPT.splitlines().index("graph.replay()  # <- bad")
    assert "error[TL103]" in done.stderr and f"graph.py:{line}" in done.stderr
    assert "[2] is 7" in done.stderr and "valid ids are [0, 4)" in done.stderr
