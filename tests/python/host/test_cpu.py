# ruff: noqa: E501 (programs in strings)
"""`--cpu` (requirement C5): scripts written for CUDA, unmodified."""

from __future__ import annotations

from typing import Any

SETUP = "import torch\nfrom trapline._cpu import redirect\nredirect.install()\n"


def test_c5_training_script(run: Any) -> None:
    source = """
import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
device = torch.device("cuda:1")
assert isinstance(device, torch.device)
torch.manual_seed(0); torch.cuda.manual_seed_all(0); torch.cuda.set_device(0)
torch.backends.cudnn.benchmark = True
model = nn.DataParallel(nn.Sequential(nn.Linear(8, 16, device="cuda"), nn.ReLU(), nn.Linear(16, 3)).cuda()).to(device)
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda")
loader = DataLoader(TensorDataset(torch.randn(32, 8), torch.randint(3, (32,))), batch_size=8, pin_memory=True, num_workers=1)
stream = torch.cuda.Stream()
if __name__ == "__main__":
    for x, y in loader:
        x, y = x.cuda(non_blocking=True), y.to("cuda", non_blocking=True)
        with torch.autocast("cuda"), torch.cuda.stream(stream):
            out = model(x)
            assert out.dtype == torch.bfloat16
            loss = nn.functional.cross_entropy(out.float(), y)
        optimizer.zero_grad(); scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()
    torch.cuda.synchronize(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
    print("memory", torch.cuda.max_memory_allocated())
"""
    ended = run(source, SETUP, library=False)
    assert (ended.code, ended.out, ended.err) == (0, "memory 0\n", "")


def test_c5_without_it_the_script_fails(run: Any) -> None:
    ended = run("import torch\ntorch.zeros(2, device='cuda')\n", "", library=False, CUDA_VISIBLE_DEVICES="")
    assert ended.code == 1


def test_c5_factories_threads_generators_and_checkpoints(run: Any) -> None:
    source = """
import io, threading, torch
kinds = []
thread = threading.Thread(target=lambda: kinds.append(torch.ones(2, device="cuda").device.type))
thread.start(); thread.join()
for name in ("zeros", "ones", "empty", "rand", "randn"):
    kinds.append(getattr(torch, name)(2, device="cuda:0").device.type)
kinds.append(torch.tensor([1.0], device=0).device.type)
kinds.append(torch.zeros(2, pin_memory=True).new_ones(2, device="cuda").device.type)
generator = torch.Generator(device="cuda"); generator.manual_seed(3)
assert isinstance(generator, torch.Generator)
torch.randn(2, generator=generator, device="cuda")
file = io.BytesIO(); torch.save(torch.ones(2), file); file.seek(0)
kinds.append(torch.load(file, map_location="cuda").device.type)
torch.set_default_device("cuda"); kinds.append(torch.zeros(1).device.type); torch.set_default_device(None)
with torch.device("cuda"):
    kinds.append(torch.zeros(1).device.type)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record(); end.record(); assert start.elapsed_time(end) >= 0
torch.cuda.nvtx.range_push("a"); torch.cuda.nvtx.range_pop()
print(len(kinds), set(kinds))
"""
    ended = run(source, SETUP, library=False)
    assert (ended.code, ended.out, ended.err) == (0, "11 {'cpu'}\n", "")


def test_c5_nccl_becomes_gloo(run: Any) -> None:
    source = """
import torch, torch.distributed as dist, tempfile, os
if dist.is_available():
    path = os.path.join(tempfile.mkdtemp(), "store")
    dist.init_process_group("nccl", init_method=f"file://{path}", rank=0, world_size=1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).cuda(0), device_ids=[0], output_device=0)
    model(torch.ones(1, 2).cuda()).sum().backward()
    assert dist.get_backend() == "gloo"
    dist.destroy_process_group()
print("done")
"""
    ended = run(source, SETUP, library=False)
    assert (ended.code, ended.out) == (0, "done\n"), ended.err


def test_c5_uninstall_puts_everything_back(run: Any) -> None:
    source = """
import torch
before = {n: getattr(torch, n) for n in dir(torch)}, {n: v for n, v in vars(torch.Tensor).items()}, dict(vars(torch.cuda))
from trapline._cpu import redirect
redirect.install(); assert torch.zeros(1, device="cuda").device.type == "cpu"; redirect.uninstall()
after = {n: getattr(torch, n) for n in dir(torch)}, {n: v for n, v in vars(torch.Tensor).items()}, dict(vars(torch.cuda))
print([{k for k in a.keys() | b.keys() if a.get(k) is not b.get(k)} for a, b in zip(before, after)])
"""
    ended = run(source, "", library=False)
    assert ended.out == "[set(), set(), set()]\n", ended.err
