"""Mistakes of devices: PyTorch's own words, as its CUDA build says them."""

from __future__ import annotations

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn

HOST, X = torch.randn(2, 4), torch.randn(2, 4, device="cuda")
IDS = torch.tensor([0, 1])
WRAPPER = (
    r"Expected all tensors to be on the same device, but got {} is on {}, different from other tensors on {}"
)


def wrapper(argument, where, others, method):
    return (
        rf"^Expected all tensors to be on the same device, but got {argument} is on {where}, different from "
        rf"other tensors on {others} \(when checking argument in method {method}\)$"
    )


ITERATOR = r"^Expected all tensors to be on the same device, but found at least two devices, {} and {}!$"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: X + HOST, ITERATOR.format("cuda:0", "cpu")),
        (lambda: HOST * X, ITERATOR.format("cuda:0", "cpu")),
        (lambda: X + X.to("cuda:1"), ITERATOR.format("cuda:0", "cuda:1")),
        (lambda: torch.where(HOST > 0, X, X), ITERATOR.format("cuda:0", "cpu")),
        (lambda: F.mse_loss(X, HOST), ITERATOR.format("cuda:0", "cpu")),
        (lambda: F.binary_cross_entropy_with_logits(X, torch.ones(2, 4)), ITERATOR.format("cuda:0", "cpu")),
        (lambda: nn.Linear(4, 3).cuda()(HOST), wrapper("mat1", "cpu", "cuda:0", "wrapper_CUDA_addmm")),
        (lambda: nn.Linear(4, 3)(X), wrapper("mat1", "cuda:0", "cpu", "wrapper_CUDA_addmm")),
        (lambda: X @ torch.randn(4, 2), wrapper("mat2", "cpu", "cuda:0", "wrapper_CUDA_mm")),
        (lambda: torch.cat([X, HOST]), wrapper("tensors", "cpu", "cuda:0", "wrapper_CUDA_cat")),
        (lambda: F.embedding(IDS, X), wrapper("index", "cpu", "cuda:0", "wrapper_CUDA__index_select")),
        (lambda: X.gather(1, IDS.view(2, 1)), wrapper("index", "cpu", "cuda:0", "wrapper_CUDA_gather")),
        (
            lambda: F.cross_entropy(X, IDS),
            wrapper("target", "cpu", "cuda:0", "wrapper_CUDA_nll_loss_forward"),
        ),
        (
            lambda: F.cross_entropy(X, IDS.cuda(), weight=torch.ones(4)),
            wrapper("weight", "cpu", "cuda:0", "wrapper_CUDA_nll_loss_forward"),
        ),
        (lambda: nn.LayerNorm(4)(X), wrapper("weight", "cpu", "cuda:0", "wrapper_CUDA__native_layer_norm")),
        (
            lambda: nn.Conv2d(3, 8, 3).cuda()(torch.randn(4, 3, 16, 16)),
            r"^Input type \(torch.FloatTensor\) and weight type \(torch.cuda.FloatTensor\) should be the",
        ),
        (
            lambda: nn.LSTM(4, 3).cuda()(HOST),
            "^Input and parameter tensors are not at the same device, found input tensor at cpu and",
        ),
        (
            lambda: HOST[IDS.cuda()],
            r"^indices should be either on cpu or on the same device as the indexed tensor \(cpu\)",
        ),
        (
            lambda: HOST[X > 0],
            r"^indices should be either on cpu or on the same device as the indexed tensor \(cpu\)",
        ),
        (
            lambda: torch.randn(3, device="cuda", generator=torch.Generator()),
            "^Expected a 'cuda' device type for generator but found 'cpu'",
        ),
        (
            lambda: torch.randn(3, generator=torch.Generator("cuda")),
            "^Expected a 'cpu' device type for generator but found 'cuda'",
        ),
        (lambda: X.to("cuda:2"), "^CUDA error: invalid device ordinal\nGPU device may be out of range"),
        (lambda: torch.cuda.set_device(2), "^CUDA error: invalid device ordinal"),
    ],
)
def test_mixed_devices(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()


@pytest.mark.parametrize("call", [X.numpy, lambda: numpy.asarray(X), lambda: numpy.array([X[0]])])
def test_numpy(call):
    words = (
        r"^can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\(\) to copy the tensor to host"
    )
    with pytest.raises(TypeError, match=words):
        call()


def test_what_is_allowed_between_devices():
    assert (X + torch.tensor(1.0)).is_cuda and (torch.tensor(2.0) * X).is_cuda
    assert torch.equal(X[IDS], X) and X[(X > 0).cpu()].is_cuda
    table = X.clone()
    table[IDS] = 0.0
    table[0, 0] = torch.tensor(3.0)
    assert table.cpu().sum() == 3.0
    assert torch.equal(HOST.clone().copy_(X), X.cpu())
    assert X.to("cuda:1").device.index == 1 and torch.equal(X.to("cuda:1").cpu(), X.cpu())
