"""PyTorch's own CUDA parts over the stand-in, without the guard: allocator, streams, captures, errors."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch
import torch.nn.functional as F


def test_the_caching_allocator_is_the_real_one():
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1000, 1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4_000_256  # rounded up to 512
    address = x.data_ptr()
    del x
    assert torch.zeros(1000, 1000, device="cuda").data_ptr() == address
    assert torch.cuda.memory_reserved() >= 4_000_000 and torch.cuda.memory_stats()["num_ooms"] == 0
    torch.cuda.empty_cache()


def test_out_of_memory_is_said_by_the_allocator():
    with pytest.raises(torch.OutOfMemoryError, match=r"CUDA out of memory\. Tried to allocate"):
        torch.empty(1 << 40, device="cuda")
    assert torch.ones(3, device="cuda").sum().item() == 3


def test_streams_and_events():
    side, begin, end = torch.cuda.Stream(priority=-1), *(torch.cuda.Event(enable_timing=True) for _ in "ab")
    x = torch.ones(64, 64, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        begin.record()
        y = x @ x
        end.record()
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0 and side.priority == -1
    torch.cuda.current_stream().wait_stream(side)
    y.record_stream(torch.cuda.current_stream())
    assert y.sum().item() == 64**3


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16])
def test_copies(pinned, dtype):
    host = torch.arange(24.0).view(4, 6)
    host = host.pin_memory() if pinned else host
    device = host.to("cuda", non_blocking=True)
    for form in (device, device.t(), device[:, ::2], device[1]):
        assert torch.equal(form.to(dtype).cpu(), form.cpu().to(dtype))
        assert torch.equal(form.to("cpu", dtype), form.cpu().to(dtype))
    target = torch.zeros(6, 4, dtype=dtype)
    target.t().copy_(device)
    assert torch.equal(target.t(), host.to(dtype))
    assert host.is_pinned() == pinned


def test_a_capture_with_two_streams_is_replayed():
    x, side = torch.zeros(4, device="cuda"), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * 2
        torch.cuda.current_stream().wait_stream(side)
        z = y + 1
    for value in (3.0, 5.0):
        x.fill_(value)
        graph.replay()
        assert z.tolist() == [2 * value + 1] * 4


def test_random_numbers_in_a_graph_differ_at_each_replay():
    generator = torch.Generator("cuda").manual_seed(1)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    out = torch.empty(8, device="cuda")
    with torch.cuda.graph(graph):
        out.uniform_(generator=generator)
    seen = []
    for _ in range(2):
        graph.replay()
        seen.append(out.tolist())
    assert seen[0] != seen[1]


def test_a_generator_gives_its_numbers_again():
    generator = torch.Generator("cuda").manual_seed(5)
    first = torch.rand(4, device="cuda", generator=generator)
    state = generator.get_state()
    second = torch.rand(4, device="cuda", generator=generator)
    generator.set_state(state)
    assert torch.equal(torch.rand(4, device="cuda", generator=generator), second)
    assert torch.equal(torch.rand(4, device="cuda", generator=generator.manual_seed(5)), first)
    assert not torch.equal(first, second)


REFUSED = {
    "waiting": "torch.cuda.synchronize()",
    "reading": "x.sum().item()",
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_a_capture_forbids(call):
    done = in_a_process(f"""
        x, graph = torch.ones(4, device="cuda"), torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                try:
                    {call}
                except torch.AcceleratorError as error:
                    print(error)
        except torch.AcceleratorError as error:
            print(error)
        print(torch.ones(3, device="cuda").sum().item())
    """)
    assert "operation not permitted when stream is capturing" in done.stdout, done.stderr
    assert "operation failed due to a previous error during capture" in done.stdout
    assert done.stdout.endswith("3.0\n"), done.stderr


def test_a_lost_context_stays_lost():
    done = in_a_process("""
        try:
            F.embedding(torch.tensor([4]).cuda(), torch.ones(4, 2, device="cuda"))
            torch.cuda.synchronize()
        except torch.AcceleratorError as error:
            print(str(error).splitlines()[0])
        try:
            torch.ones(3, device="cuda")
        except torch.AcceleratorError as error:
            print(str(error).splitlines()[0])
    """)
    assert done.stdout == "CUDA error: device-side assert triggered\n" * 2, done.stderr
    assert "Assertion `srcIndex < srcSelectDimSize` failed." in done.stderr


def test_a_kernel_without_a_stand_in_is_named():
    done = in_a_process("""
        x = torch.ones(2, 3, device="cuda")
        try:
            torch.ops.aten._thnn_fused_gru_cell(x, x, torch.ones(2, 1, device="cuda"))
        except torch.AcceleratorError as error:
            print(str(error).splitlines()[0])
    """)
    assert done.stdout == "CUDA error: invalid device function\n", done.stderr
    assert "fake_cuda: no stand-in for the kernel void at::native::" in done.stderr


def test_cuda_in_a_forked_child_is_refused_by_pytorch():
    done = in_a_process("""
        import os
        torch.ones(3, device="cuda")
        if os.fork() == 0:
            try:
                torch.ones(3, device="cuda")
            except RuntimeError as error:
                print(error, flush=True)
            os._exit(0)
        os.wait()
    """)
    assert "Cannot re-initialize CUDA in forked subprocess" in done.stdout


def test_backward_runs_on_the_device_s_own_thread():
    import threading

    seen = []
    x = torch.ones(3, device="cuda", requires_grad=True)
    y = x * 2
    y.register_hook(lambda _: seen.append(threading.get_ident()))
    y.sum().backward()
    assert seen and seen[0] != threading.get_ident() and x.grad.tolist() == [2.0] * 3
    assert F.relu(x).sum().item() == 3


def in_a_process(program):
    text = "import torch\nimport torch.nn.functional as F\n" + textwrap.dedent(program)
    command = [sys.executable, "-c", text]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
