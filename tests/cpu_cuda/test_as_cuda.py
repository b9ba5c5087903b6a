"""Where CUDA and the CPU part: dtypes, derivatives of what runs as a whole, layouts, words, and the names of
torch.cuda. Each was wrong in a program that nobody here had written."""

from __future__ import annotations

import ast
import glob
import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from conftest import ROOT
from torch import nn

ACTIVITIES = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
INTEGERS = torch.ones(2, 2, dtype=torch.long)


def both(make):
    """What `make(device)` gives on both devices, from the same seed."""
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(3)
        results.append(make(device))
    return results


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(8, 1)),
        lambda: nn.Sequential(nn.Linear(4, 8), nn.GroupNorm(2, 8), nn.Tanh(), nn.Linear(8, 1)),
        lambda: nn.RNN(4, 3),
        lambda: nn.LSTM(4, 3),
    ],
)
def test_the_penalty_of_a_gradient(make):
    def gradients(device):
        model, x = make().to(device), torch.randn(6, 4).to(device).requires_grad_()
        out = model(x)
        out = out[0] if isinstance(out, tuple) else out
        (first,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        (out.mean() + 10 * ((first.norm(2, dim=1) - 1) ** 2).mean()).backward()
        return [p.grad.cpu() for p in model.parameters() if p.grad is not None]

    host, device = both(gradients)
    assert len(host) == len(device) > 0
    for expected, got in zip(host, device):  # parts are summed in another order
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: F.dropout(a, 0.1),
        lambda a: F.scaled_dot_product_attention(a, a, a, dropout_p=0.1),
        lambda a: F.group_norm(a, 2),
        lambda a: a.renorm(2, 0, 1.0),
    ],
)
def test_what_runs_as_a_whole_can_be_compiled(call):
    a = torch.randn(2, 4, 8, 16, device="cuda")
    torch._dynamo.reset()
    torch.manual_seed(0)
    compiled = torch.compile(call, fullgraph=True)(a)
    torch.manual_seed(0)
    assert torch.equal(compiled, call(a))


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.GRUCell])
def test_recurrent_layers_can_be_compiled(kind):
    model, x = kind(4, 3).cuda(), torch.randn(5, 4, device="cuda")
    torch._dynamo.reset()
    out, expected = torch.compile(model)(x), model(x)
    assert torch.equal(out if kind is nn.GRUCell else out[0], expected if kind is nn.GRUCell else expected[0])


def test_softmax_from_half_to_float():
    def gradient(device):
        x = torch.randn(4, 4).to(device).half().requires_grad_()
        (F.softmax(x, -1, dtype=torch.float32) * F.log_softmax(x, -1, dtype=torch.float32)).sum().backward()
        return x.grad.cpu()

    assert torch.equal(*both(gradient))
    a = torch.randn(4, 4, device="cuda")
    with torch.autocast("cuda"):
        assert F.softmax(a @ a, -1).dtype == torch.float32


def test_channels_last_stays():
    x = torch.randn(2, 16, 8, 8).contiguous(memory_format=torch.channels_last)
    expected, got = F.group_norm(x, 4), F.group_norm(x.cuda(), 4)
    assert got.stride() == expected.stride() == (1024, 1, 128, 16) and torch.equal(got.cpu(), expected)


@pytest.mark.parametrize(
    ("call", "kernel"),
    [
        (lambda i: i @ i, "addmm_cuda"),
        (lambda i: F.linear(i, i), "addmm_cuda"),
        (lambda i: torch.bmm(i[None], i[None]), "baddbmm_cuda"),
        (lambda i: i @ i[0], "addmv_impl_cuda"),
        (lambda i: i[0] @ i[0], "dot"),
        (lambda i: F.conv2d(i[None, None], i[None, None]), "slow_conv2d_cuda"),
        (lambda i: F.avg_pool2d(i[None], 2), "avg_pool2d_out_cuda_frame"),
    ],
)
def test_integers_that_cuda_has_no_kernel_for(call, kernel):
    with pytest.raises(NotImplementedError, match=f"^\"{kernel}\" not implemented for 'Long'"):
        call(INTEGERS.cuda())


def test_labels_of_32_bits():
    with pytest.raises(NotImplementedError, match="_2d_index\" not implemented for 'Int'"):
        F.cross_entropy(torch.randn(2, 3).cuda(), torch.tensor([0, 1], dtype=torch.int32).cuda())
    expected = F.cross_entropy(torch.eye(3), torch.tensor([0, 1, 2], dtype=torch.uint8))
    assert F.cross_entropy(torch.eye(3).cuda(), torch.tensor([0, 1, 2], dtype=torch.uint8).cuda()) == expected


def test_a_histogram_of_integers():
    x = torch.tensor([0, 3, 1, 1, 7, 7, 9], device="cuda")
    assert torch.histc(x, 8, 0, 7).tolist() == [1, 2, 0, 1, 0, 0, 0, 2]
    assert torch.histc(x, 3).tolist() == [3, 1, 3] and torch.histc(x, 3).dtype == torch.long


def test_more_memory_than_there_is():
    with pytest.raises(torch.OutOfMemoryError, match=r"^CUDA out of memory\. Tried to allocate 134"):
        torch.empty(1 << 45, device="cuda")


MIXED = {
    "convolution": (
        lambda: nn.Conv2d(3, 4, 3)(torch.ones(1, 3, 8, 8).cuda()),
        "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
    ),
    "bias": (
        lambda: F.conv2d(torch.ones(1, 3, 8, 8).cuda(), torch.ones(4, 3, 3, 3).cuda(), torch.ones(4)),
        "Input type (torch.cuda.FloatTensor) and bias type (torch.FloatTensor) should be the same",
    ),
    "mask": (
        lambda: torch.ones(3).cuda().masked_fill(torch.ones(3).bool(), 0.0),
        "expected self and mask to be on the same device, but got mask on cpu and self on cuda:0",
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_words_of_their_own(name):
    call, words = MIXED[name]
    with pytest.raises(RuntimeError) as raised:
        call()
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.eye(3).to_sparse().cuda(),
        lambda: torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2), device="cuda"),
        lambda: F.embedding(
            torch.tensor([1]).cuda(), torch.ones(3, 2).cuda().requires_grad_(), sparse=True
        ).sum().backward(),
        lambda: torch.quantize_per_tensor(torch.ones(3).cuda(), 0.1, 0, torch.qint8),
    ],
)  # fmt: skip
def test_layouts_that_cannot_be(make):
    with pytest.raises(NotImplementedError, match=r"trapline: --cpu: aten::.* sparse, nested or"):
        make()


def test_types_by_their_old_names():
    x = torch.rand(2)
    assert x.type(torch.cuda.FloatTensor).is_cuda and x.type("torch.cuda.HalfTensor").dtype == torch.half
    assert torch.cuda.LongTensor([1, 2]).tolist() == [1, 2]
    assert isinstance(x.cuda(), torch.cuda.FloatTensor) and not isinstance(x, torch.cuda.FloatTensor)
    try:
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
        assert torch.rand(2).is_cuda
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert not torch.rand(2).is_cuda


def test_threads_stay_as_many_when_a_loader_pins():
    before = torch.get_num_threads()
    loader = torch.utils.data.DataLoader(torch.arange(4.0), num_workers=1, pin_memory=True)
    counts = []

    class Count(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            return value * 1

        @staticmethod
        def backward(ctx, gradient):
            counts.append(torch.get_num_threads())
            return gradient

    for batch in loader:
        Count.apply(batch.cuda().requires_grad_()).sum().backward()
    assert counts == [before] * 4


def test_the_profiler_says_nothing_of_cuda(capfd):
    with torch.profiler.profile(activities=ACTIVITIES) as profile:
        torch.ones(3, device="cuda").sum().item()
    with torch.autograd.profiler.emit_nvtx():
        torch.cuda.nvtx.range_push("step")
        torch.cuda.nvtx.range_pop()
    assert len(profile.events()) > 0 and "Failed" not in capfd.readouterr().err


def test_every_name_of_torch_c_that_torch_cuda_uses_is_there():
    asked = set()
    root = os.path.dirname(torch.__file__)
    for path in glob.glob(f"{root}/cuda/*.py"):
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "torch._C":
                asked |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "torch._C":
                asked.add(node.attr)
    assert len(asked) > 80
    missing = {name for name in asked if not hasattr(torch._C, name)}
    assert missing <= {"_CUDAGreenContext"}, missing  # torch asks before it uses it


def test_a_program_that_ends_behind_a_backward_call_ends_well(tmp_path):
    """The thread of the backward call lets go of Python's objects when the call has returned."""
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\ntorch.randn(4, device='cuda', requires_grad=True).sum().backward()\n", encoding="utf-8"
    )
    prepare = f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'cpu_cuda')!r}); import conftest;"
    command = [sys.executable, "-c", f"{prepare} exec(open({str(script)!r}).read())"]
    codes = [subprocess.run(command, capture_output=True, check=False).returncode for _ in range(5)]
    assert codes == [0] * 5


def test_a_seed_of_late_work_that_is_no_number_is_refused(tmp_path):
    prepare = f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'cpu_cuda')!r}); import conftest;"
    done = subprocess.run(
        [sys.executable, "-c", f"{prepare} import torch; print(torch.ones(2, device='cuda').tolist())"],
        env={**os.environ, "TRAPLINE_CPU_LATE": "often"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[1.0, 1.0]\n"
    assert done.stderr == (
        "trapline: --cpu: work is done at once: TRAPLINE_CPU_LATE is 'often': "
        "set it to a number, the seed, or leave it out\n"
    )
