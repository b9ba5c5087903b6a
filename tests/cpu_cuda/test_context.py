"""A bad value loses the context as on CUDA: PyTorch's own line on stderr, and then every call fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from conftest import ROOT
from trapline._cpu import backend

X = torch.rand(4, 5, device="cuda")
BAD = torch.tensor([1, 7], device="cuda")
WORDS = (
    "^CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in https://docs.nvidia.com/cuda/"
)

CALLS = {
    "embedding": lambda: F.embedding(BAD, X),
    "cross_entropy": lambda: F.cross_entropy(X, torch.tensor([0, 1, 2, 5]).cuda()),
    "cross_entropy without reduction": lambda: F.cross_entropy(
        X, torch.tensor([0, 1, 2, -1]).cuda(), reduction="none"
    ),
    "cross_entropy of images": lambda: F.cross_entropy(X.view(1, 5, 2, 2), torch.full((1, 2, 2), 5).cuda()),
    "index": lambda: X[BAD],
    "assignment": lambda: X.clone().__setitem__(BAD, 0.0),
    "gather": lambda: X.gather(1, BAD.view(1, 2)),
    "scatter_": lambda: X.clone().scatter_(1, BAD.view(1, 2), 1.0),
    "index_select": lambda: X.index_select(0, BAD),
    "index_add_": lambda: X.clone().index_add_(0, BAD, X[:2]),
    "take": lambda: X.take(torch.tensor([20]).cuda()),
    "binary_cross_entropy": lambda: F.binary_cross_entropy(X + 1, X),
    "multinomial": lambda: torch.multinomial(-X, 1),
    "poisson": lambda: torch.poisson(-X),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_context_is_lost(name, capfd):
    result = CALLS[name]()
    line = capfd.readouterr().err
    assert line.startswith("../aten/src/ATen/native/cuda/") and line.endswith("` failed.\n")
    assert backend.device.context_lost()
    assert result is None or result.is_cuda
    for later in (
        torch.cuda.synchronize,
        lambda: X + 1,
        X.cpu,
        lambda: X.sum().item(),
        lambda: torch.zeros(1, device="cuda"),
        lambda: torch.cuda.current_stream().synchronize(),
        lambda: torch.ones(1).cuda(),
    ):
        with pytest.raises(torch.AcceleratorError, match=WORDS):
            later()
    assert torch.ones(2).sum().item() == 2.0  # the CPU is as it was


@pytest.mark.parametrize("name", CALLS)
def test_explain_knows_the_line(name, capfd, tmp_path):
    CALLS[name]()
    log = tmp_path / "log"
    log.write_text(
        capfd.readouterr().err + "torch.AcceleratorError: CUDA error: device-side assert triggered\n"
    )
    build = os.environ["TRAPLINE_BUILD_DIR"]
    told = subprocess.run(
        [f"{build}/bin/trapline", "explain", log], check=False, capture_output=True, text=True
    )
    assert told.returncode == 1 and "error[TL1" in told.stdout, told


def test_an_error_that_the_host_makes_loses_nothing():
    with pytest.raises(RuntimeError, match="must match"):
        X + X[:, :2]
    with pytest.raises(IndexError, match="is out of bounds for dimension 0"):
        X[9]
    assert not backend.device.context_lost() and X.sum().item() > 0


def test_launch_blocking_raises_at_the_call(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nx = torch.ones(2, device='cuda')\n"
        "try:\n    x[torch.tensor([3]).cuda()]\nexcept RuntimeError as error:\n    print(str(error)[:45])\n"
    )
    environment = {**os.environ, "CUDA_LAUNCH_BLOCKING": "1", "TRAPLINE_CPU": "1", "TRAPLINE_GUARD": "0"}
    prepare = f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'cpu_cuda')!r}); import conftest;"
    done = subprocess.run(
        [sys.executable, "-c", f"{prepare} exec(open({str(script)!r}).read())"],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    assert done.stdout == "CUDA error: device-side assert triggered\nSear\n"


def test_late_work_goes_to_the_stream_of_the_tensors_device():
    program = Path(__file__).parent / "two_devices.py"
    done = subprocess.run([sys.executable, program], check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "2 cuda:1 False [6.0, 6.0, 6.0, 6.0]\n"), done.stderr


def test_the_program_s_own_assertion_loses_it(capfd):
    torch._assert_async(X.sum() > 0)
    assert capfd.readouterr().err == ""
    assert not backend.device.context_lost()
    torch._assert_async(X.sum() < 0, "loss must be finite")
    assert capfd.readouterr().err == (
        "../aten/src/ATen/native/cuda/TensorCompare.cu:109: _assert_async_cuda_kernel: block: [0,0,0], "
        "thread: [0,0,0] Assertion `loss must be finite` failed.\n"
    )
    with pytest.raises(torch.AcceleratorError, match=WORDS):
        X.cpu()
