"""Tensors that are on ``cuda`` and in host memory: what they are, and that they compute as the CPU does."""

from __future__ import annotations

import copy
import io

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from trapline._cpu import backend

D = "cuda:0"


def test_what_a_program_asks_of_a_device():
    x = torch.ones(2, 3, device="cuda")
    assert x.is_cuda and str(x.device) == D and x.device.type == "cuda"
    assert torch.ones(1).cuda().device == torch.ones(1).to("cuda").device == x.device
    assert torch.ones(1, device="cuda:1").get_device() == 1
    assert x.cpu().device.type == "cpu" and not x.cpu().is_cuda
    assert x.sum().item() == 6.0 and bool(x[0, 0] == 1) and x.tolist() == [[1.0] * 3] * 2
    assert repr(torch.tensor([1, 2], device="cuda")) == "tensor([1, 2], device='cuda:0')"
    assert x.type() == "torch.cuda.FloatTensor" and isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    assert {str(p.device) for p in nn.Linear(2, 2).cuda().parameters()} == {D}
    assert {str(p.device) for p in nn.Linear(2, 2, device="cuda").parameters()} == {D}


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: torch.empty(3, **k).fill_(1),
        lambda **k: torch.full((2, 2), 7, **k),
        lambda **k: torch.arange(5, **k),
        lambda **k: torch.linspace(0, 1, 5, **k),
        lambda **k: torch.eye(3, **k),
        lambda **k: torch.tensor([[1.5, 2.0]], **k),
        lambda **k: torch.randn(4, **k),
        lambda **k: torch.randperm(10, **k),
        lambda **k: torch.randint(0, 9, (5,), **k),
        lambda **k: torch.zeros(2, dtype=torch.int8, **k),
        lambda **k: torch.hann_window(6, **k),
        lambda **k: torch.tril_indices(3, 3, **k),
        lambda **k: torch.empty_strided((2, 3), (1, 2), **k).zero_(),
        lambda **k: torch.scalar_tensor(3.0, **k),
    ],
)
def test_factories(make):
    torch.manual_seed(5)
    host = make(device="cpu")
    torch.manual_seed(5)
    device = make(device="cuda")
    assert str(device.device) == D and device.dtype == host.dtype and device.stride() == host.stride()
    assert torch.equal(device.cpu(), host)


def test_memory_is_shared_by_views_and_not_by_copies():
    x = torch.arange(12.0, device="cuda").view(3, 4)
    row, transposed, copied = x[1], x.t(), x.clone()
    row.zero_()
    assert transposed[:, 1].tolist() == [0.0] * 4 and copied[1].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert x.data_ptr() == transposed.data_ptr() != copied.data_ptr()
    assert row._is_view() and row._base is not None and x.untyped_storage().device.type == "cuda"


def test_out_arguments_grow_and_storages_are_resized():
    x = torch.ones(2, 3, device="cuda")
    out = torch.empty(0, device="cuda")
    assert torch.add(x, x, out=out) is out and out.tolist() == [[2.0] * 3] * 2
    assert x.resize_(3, 3).shape == (3, 3) and x[:2].sum().item() == 6.0
    storage = out.untyped_storage()
    assert storage.resize_(400).nbytes() == 400 and storage.device.type == "cuda"
    assert out[0].tolist() == [2.0] * 3 and storage.resize_(8).nbytes() == 8
    assert torch.empty(0, device="cuda").set_(storage).tolist() == [2.0, 2.0]
    assert storage.resize_(0).nbytes() == 0 and storage.resize_(24).nbytes() == 24
    assert out.fill_(3.0).sum().item() == 18.0
    assert torch.empty(0, device="cuda").set_(x).data_ptr() == x.data_ptr()


def test_saving_loading_and_deep_copies():
    x = torch.randn(3, device="cuda", requires_grad=True)
    assert copy.deepcopy(x).device == x.device
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    assert torch.equal(torch.load(file)["x"], x)
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].device.type == "cpu"
    file.seek(0)
    assert torch.load(file, map_location={"cuda:0": "cuda:1"})["x"].device.index == 1


def test_pinned_memory_and_copies_that_do_not_block():
    x = torch.randn(4)
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned() and torch.equal(pinned, x)
    device = pinned.to("cuda", non_blocking=True)
    assert torch.equal(device.to("cpu", non_blocking=True), x)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        device.pin_memory()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(3, device="cuda", pin_memory=True)


def trained(device, make, steps=3):
    """Everything that a few training steps leave: losses, weights, and their optimizer's state."""
    torch.manual_seed(0)
    model = make()
    data = torch.randn(8, 6), torch.randint(0, 4, (8,))
    model, (x, y) = model.to(device), (t.to(device) for t in data)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in model.parameters()]


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers = kind(3, 5, num_layers=2, dropout=0.3)
        self.head = nn.Linear(5, 4)

    def forward(self, x):
        return self.head(self.layers(x.view(2, 8, 3))[0][-1])


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Dropout(0.3), nn.Linear(9, 4)),
        lambda: nn.Sequential(
            nn.BatchNorm1d(6), nn.Linear(6, 9), nn.GELU(), nn.LayerNorm(9), nn.Linear(9, 4)
        ),
        lambda: nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 3, 3), nn.Flatten(), nn.Linear(12, 4)),
        lambda: nn.Sequential(
            nn.Unflatten(1, (1, 6)), nn.TransformerEncoderLayer(6, 2, 8), nn.Flatten(), nn.Linear(6, 4)
        ),
        lambda: Recurrent(nn.LSTM),
        lambda: Recurrent(nn.GRU),
        lambda: Recurrent(nn.RNN),
    ],
)
def test_training_is_that_of_the_cpu_bit_for_bit(make):
    host, device = trained("cpu", make), trained("cuda", make)
    assert host[0] == device[0]
    assert all(torch.equal(a, b) for a, b in zip(host[1], device[1]))


def test_a_write_before_backward_is_noticed_in_what_runs_as_a_whole():
    cell, x = nn.LSTMCell(3, 4).cuda(), torch.randn(2, 3, device="cuda")
    out = cell(x)[0].sum()
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_second_derivatives_and_functions_of_their_own():
    x = torch.randn(3, device="cuda", requires_grad=True)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    first.sum().backward()
    assert torch.allclose(x.grad, 6 * x)

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value * 2

        @staticmethod
        def backward(ctx, gradient):
            assert gradient.is_cuda
            return gradient * 2

    y = torch.ones(2, device="cuda", requires_grad=True)
    Double.apply(y).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]


def test_what_runs_as_a_whole_does_so_after_a_transform_too():
    torch.func.grad(lambda x: x.sum())(torch.ones(2, device="cuda"))
    assert torch.nn.LSTM(3, 4).cuda()(torch.ones(2, 1, 3, device="cuda"))[0].is_cuda
    attend = torch.func.vmap(lambda x: F.scaled_dot_product_attention(x, x, x))
    assert attend(torch.ones(2, 1, 3, 4, device="cuda")).shape == (2, 1, 3, 4)


def test_what_cannot_be_done_says_its_name():
    with pytest.raises(
        NotImplementedError, match=r"trapline: --cpu: aten::_to_sparse.* makes a tensor of layout"
    ):
        torch.eye(3, device="cuda").to_sparse()
    with pytest.raises(
        NotImplementedError, match=r"trapline: --cpu: aten::_cudnn_rnn_flatten_weight cannot be run"
    ):
        torch._cudnn_rnn_flatten_weight([torch.ones(3, 3, device="cuda")], 0, 3, 2, 3, 0, 1, False, False)


def test_what_cuda_lacks_says_so_in_pytorchs_words():
    with pytest.raises(
        NotImplementedError, match=r"Could not run 'aten::histogram\.bin_ct' with arguments from"
    ):
        torch.histogram(torch.ones(3, device="cuda"), 2)


def test_the_count_of_memory_follows_the_tensors():
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4000
    y = x + 1
    assert torch.cuda.memory_allocated() - before == 8000
    del x, y
    assert torch.cuda.memory_allocated() == before and torch.cuda.max_memory_allocated() >= before + 8000
    assert backend.device.memory(0)["allocated"] == before
