"""``torch.cuda``, ``torch.accelerator`` and automatic mixed precision, as scripts use them."""

from __future__ import annotations

import os

import pytest
import torch
from torch import nn


def test_the_module_answers_as_on_a_machine_with_two():
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2
    assert torch.cuda.current_device() == 0 and torch.cuda.get_device_capability() == (8, 0)
    assert "trapline" in torch.cuda.get_device_name(0)
    assert torch.cuda.get_device_properties("cuda:1").total_memory > 1 << 20
    assert torch.cuda.is_bf16_supported() and torch.backends.cuda.is_built()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    assert "Allocated memory" in torch.cuda.memory_summary()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == torch.cuda.memory_allocated()


def test_the_current_device_is_a_threads_own():
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").device.index == 1
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device(1)
    assert torch.ones(1).cuda().device.index == 1
    with torch.cuda.device_of(torch.ones(1, device="cuda:0")):
        assert torch.cuda.current_device() == 0


def test_accelerator():
    assert torch.accelerator.is_available() and torch.accelerator.device_count() == 2
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    torch.accelerator.set_device_index(1)
    assert torch.accelerator.current_device_index() == 1 == torch.cuda.current_device()
    torch.accelerator.synchronize()
    x = torch.ones(1000, device="cuda:1")
    assert torch.accelerator.memory_allocated() == torch.cuda.memory_allocated() >= x.nbytes


def test_streams_and_events():
    stream = torch.cuda.Stream()
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        before.record()
        x = torch.ones(10, device="cuda") * 2
        after.record()
    assert torch.cuda.current_stream() == torch.cuda.default_stream() != stream
    torch.cuda.current_stream().wait_stream(stream)
    x.record_stream(torch.cuda.current_stream())
    stream.synchronize()
    after.synchronize()
    assert after.query() and stream.query() and before.elapsed_time(after) >= 0 and x.sum().item() == 20


def test_the_default_generator_draws_the_cpus_numbers():
    torch.manual_seed(3)
    first = torch.randn(4)
    torch.manual_seed(3)
    assert torch.equal(torch.randn(4, device="cuda").cpu(), first)
    torch.cuda.manual_seed_all(3)
    assert torch.equal(torch.randn(4, device="cuda:1").cpu(), first)
    state = torch.cuda.get_rng_state()
    again = torch.rand(5, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(5, device="cuda"), again)


def test_generators_of_their_own():
    host, device = torch.Generator().manual_seed(9), torch.Generator("cuda").manual_seed(9)
    assert device.device.type == "cuda" and device.initial_seed() == 9
    for _ in range(2):
        assert torch.equal(
            torch.randn(3, generator=host), torch.randn(3, generator=device, device="cuda").cpu()
        )


def test_mixed_precision():
    model, scaler = nn.Linear(4, 4).cuda(), torch.amp.GradScaler("cuda", init_scale=128.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(3, 4, device="cuda")
    with torch.autocast("cuda"):
        out = model(x)
    assert out.dtype == torch.float16 and torch.get_autocast_dtype("cuda") == torch.float16
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert model(x).dtype == torch.bfloat16
    before = model.weight.detach().clone()
    scaler.scale(out.float().pow(2).mean()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, model.weight) and scaler.get_scale() == 128.0
    model.weight.grad.fill_(float("inf"))
    before = model.weight.detach().clone()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(before, model.weight) and scaler.get_scale() == 64.0


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("how", [{}, {"foreach": False}, {"fused": True}])
def test_optimizers(name, how):
    if how.get("fused") and name == "RMSprop":
        pytest.skip("has no fused form")
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(1)
        model = nn.Linear(5, 5).to(device)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, **how)
        for _ in range(3):
            model.zero_grad()
            model(torch.ones(2, 5, device=device)).pow(2).sum().backward()
            optimizer.step()
        results.append(model.weight.detach().cpu())
    assert torch.equal(*results)


class OnTheDevice(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return torch.ones(3).cuda()


def test_workers_made_by_fork_have_no_device():
    torch.ones(1, device="cuda")
    with pytest.raises(RuntimeError, match="Cannot re-initialize CUDA in forked subprocess"):
        list(torch.utils.data.DataLoader(OnTheDevice(), num_workers=1))


def test_a_loader_that_pins():
    batches = list(
        torch.utils.data.DataLoader(torch.arange(4.0), num_workers=1, pin_memory=True, batch_size=2)
    )
    assert all(batch.is_pinned() for batch in batches)
    assert torch.cat([batch.cuda(non_blocking=True) for batch in batches]).sum().item() == 6.0


@pytest.mark.parametrize("how", [{}, {"mode": "reduce-overhead"}, {"fullgraph": True, "dynamic": False}])
def test_compile(how):
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).cuda(), torch.randn(3, 4).cuda()
    compiled = torch.compile(model, **how)
    compiled(x).sum().backward()
    assert compiled(x).is_cuda and torch.equal(compiled(x), model(x)) and model[0].weight.grad is not None


def test_two_devices_share_nothing():
    left, right = torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")
    right.copy_(left * 3)
    assert right.device.index == 1 and right.tolist() == [3.0, 3.0]
    model = nn.DataParallel(nn.Linear(2, 2).cuda())
    assert model(torch.ones(4, 2, device="cuda")).shape == (4, 2)
    assert os.environ["TRAPLINE_CPU_DEVICES"] == "2"
