"""Late work itself (TRAPLINE_CPU_LATE), without the guard: what has not happened yet cannot be seen, streams
wait for nobody by themselves, and what comes out is the CPU's."""

from __future__ import annotations

import importlib.util
import sys

import late
import pytest
import torch
import torch.nn.functional as F
from conftest import CUDA_BUILD, ROOT


@pytest.fixture(autouse=True)
def context():
    late.reset()
    yield
    late.reset()


def of_cpu_cuda(name):
    """A module of the tests of the same device without late work."""
    spec = importlib.util.spec_from_file_location(f"cuda_{name}", ROOT / "tests" / "cpu_cuda" / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("program", of_cpu_cuda("programs").PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_gives_what_it_gives_on_the_cpu(program):
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(11)
        results.append([tensor.cpu() for tensor in program(device)])
    # PyTorch's own CUDA build takes CUDA's formulas, as for the averages of weights.
    same = torch.allclose if CUDA_BUILD else torch.equal
    assert all(same(host, device) for host, device in zip(*results)) and results[0]


def test_a_captured_training_step_is_the_step():
    of_cpu_cuda("test_graphs").test_a_captured_training_step_is_the_step()


def test_a_call_returns_before_its_work_is_done():
    x, done = torch.ones(3, device="cuda"), torch.cuda.Event()
    with late.held():
        y = x + 1
        done.record()
        assert y.shape == (3,) and not done.query() and not torch.cuda.current_stream().query()
    done.synchronize()
    assert done.query() and y.tolist() == [2.0] * 3


def test_page_locked_memory_is_written_later_and_other_memory_at_once():
    x = torch.full((2,), 5.0, device="cuda")
    locked = torch.zeros(2).pin_memory()
    torch.cuda.synchronize()
    with late.held():
        locked.copy_(x, non_blocking=True)
        assert locked.tolist() == [0.0, 0.0]
    torch.cuda.synchronize()
    assert locked.tolist() == [5.0, 5.0]
    assert torch.zeros(2).copy_(x, non_blocking=True).tolist() == [5.0, 5.0]


def test_page_locked_memory_is_read_later_and_other_memory_at_once():
    locked, pageable = torch.ones(2).pin_memory(), torch.ones(2)
    with late.held():
        late_read, read = locked.to("cuda", non_blocking=True), pageable.to("cuda", non_blocking=True)
        locked.fill_(9.0)
        pageable.fill_(9.0)
    assert late_read.tolist() == [9.0, 9.0] and read.tolist() == [1.0, 1.0]


def test_another_stream_has_to_be_told_to_wait():
    x, side = torch.zeros(2, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    with late.held():
        x.add_(1)
        with torch.cuda.stream(side):
            early = x * 1
            side.synchronize()
            assert early.tolist() == [0.0, 0.0]
            side.wait_stream(torch.cuda.default_stream())
            told = x * 1
    with torch.cuda.stream(side):
        assert told.tolist() == [1.0, 1.0]


def test_memory_is_given_again_at_once_unless_another_stream_uses_it():
    x, side = torch.ones(64, device="cuda"), torch.cuda.Stream()
    address = x.data_ptr()
    del x
    assert torch.empty(64, device="cuda").data_ptr() == address
    x = torch.ones(64, device="cuda")
    assert x.data_ptr() == address
    x.record_stream(side)
    del x
    assert torch.empty(64, device="cuda").data_ptr() != address


def test_a_call_that_cannot_be_made_is_refused_when_it_is_made():
    x = torch.ones(3, device="cuda")
    for call in (x.add, x.copy_):
        with pytest.raises(RuntimeError, match="must match the size"):
            call(torch.ones(4, device="cuda"))
    assert not late.poisoned() and (x + 1).tolist() == [2.0] * 3


def test_a_tensor_is_turned_in_place_at_once():
    x = torch.arange(9.0, device="cuda").view(3, 3)
    for turned in (x.clone().t_(), x.clone().transpose_(0, 1), x.clone().swapdims_(0, 1)):
        assert torch.equal(turned.cpu(), x.cpu().t())


def test_sizes_that_depend_on_values_wait():
    x = torch.arange(6, device="cuda")
    assert x[x > 3].tolist() == [4, 5] and x.nonzero().shape == (5, 1)
    out = torch.empty(0, device="cuda")
    assert torch.add(x.float(), 1, out=out) is out and out.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", [torch.nn.LayerNorm, torch.nn.BatchNorm1d])
def test_norms_of_short_floats_have_derivatives(kind, dtype):
    gradients = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(1)
        norm = kind(8, dtype=dtype).to(device)
        x = torch.randn(6, 8).to(device, dtype).requires_grad_()
        norm(x).pow(2).sum().backward()
        gradients.append([t.grad.cpu().float() for t in (x, *norm.parameters())])
    assert all(torch.allclose(host, device, atol=0.1) for host, device in zip(*gradients))


def test_a_bad_index_is_noticed_later(capfd):
    table = torch.ones(4, 2, device="cuda")
    with late.held():
        rows = F.embedding(torch.tensor([1, 4]).cuda(non_blocking=True), table)
        assert rows.shape == (2, 2) and not late.poisoned()
    with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
        torch.cuda.synchronize()
    assert "Assertion `srcIndex < srcSelectDimSize` failed." in capfd.readouterr().err
    with pytest.raises(torch.AcceleratorError):
        table + 1


def test_launch_blocking_notices_it_at_the_call(monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
        F.embedding(torch.tensor([4]).cuda(), torch.ones(4, 2, device="cuda"))
