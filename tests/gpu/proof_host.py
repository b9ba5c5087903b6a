"""When the host learns of a fault: reads, synchronization, the optimizer, streams, threads, report-only."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import proof
import torch
import torch.nn.functional as F
from proof import DEVICE, LeftOut, case, caught, usable

proof.guard()


def table() -> torch.Tensor:
    return torch.randn(10, 4, device=DEVICE)


def ids(*values: int) -> torch.Tensor:
    return torch.tensor(values, device=DEVICE)


def only_cuda() -> None:
    if DEVICE.type != "cuda":
        raise LeftOut("needs CUDA")


@case
def item_raises_before_a_number_is_returned() -> str:
    def run() -> None:
        total = F.embedding(ids(1, 12), table()).sum()
        raise AssertionError(f"item() returned {total.item()}")

    finding = caught(run)
    assert finding["element"]["value"] == 12, finding["element"]
    assert finding["origin"]["function"] == "run", finding["origin"]
    usable()
    return finding["summary"]


@case
def copy_to_the_host_raises() -> None:
    def run() -> None:
        table()[ids(3, -11)].cpu()

    finding = caught(run)
    assert finding["element"]["value"] == -11, finding["element"]
    usable()


@case
def pinned_copy_is_reported_at_synchronize() -> None:
    only_cuda()
    target = torch.empty(2, 4, pin_memory=True)

    def run() -> None:
        target.copy_(F.embedding(ids(1, 10), table()), non_blocking=True)
        torch.cuda.current_stream().synchronize()

    assert caught(run)["element"]["value"] == 10
    usable()


@case
def event_synchronize_raises() -> None:
    only_cuda()
    event = torch.cuda.Event()

    def run() -> None:
        F.embedding(ids(1, 11), table())
        event.record()
        event.synchronize()

    assert caught(run)["element"]["value"] == 11
    usable()


@case
def optimizer_step_is_not_taken() -> None:
    import trapline

    layer = torch.nn.Linear(8, 3).to(DEVICE)
    before = layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    try:
        F.cross_entropy(layer(torch.randn(4, 8, device=DEVICE)), ids(0, 1, 3, 2)).backward()
        optimizer.step()
    except trapline.DeviceAssertError as error:
        finding = error.finding
    else:
        raise AssertionError("the step was taken")
    assert finding["element"]["value"] == 3 and finding["element"]["index"] == [2], finding["element"]
    assert torch.equal(layer.weight, before), "the weights changed"
    usable()


@case
def two_streams() -> None:
    only_cuda()
    good, bad = torch.cuda.Stream(), torch.cuda.Stream()
    weights = table()
    torch.cuda.synchronize()
    with torch.cuda.stream(good):
        right = F.embedding(ids(1, 2), weights)

    def run() -> None:
        with torch.cuda.stream(bad):
            F.embedding(ids(99), weights)
        bad.synchronize()

    assert caught(run)["element"]["value"] == 99
    assert torch.equal(right.cpu(), weights.cpu()[[1, 2]]), "the other stream's result is wrong"
    usable()


@case
def two_threads() -> None:
    """Each thread is told of its own fault."""
    import trapline

    found: dict[int, int] = {}
    wrong: list[str] = []
    start = threading.Barrier(2)

    def work(bad: int) -> None:
        weights = table()
        start.wait()
        for _ in range(50):
            F.embedding(ids(1, 2), weights)
        try:
            F.embedding(ids(bad), weights)
            for _ in range(1000):
                F.embedding(ids(1, 2), weights)
            proof.synchronize()
        except trapline.DeviceAssertError as error:
            found[bad] = error.finding["element"]["value"]
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=(bad,)) for bad in (50, 60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proof.synchronize()
    assert not wrong, wrong
    assert found == {50: 50, 60: 60}, found
    usable()


@case
def autograd_thread_names_the_forward_line() -> str:
    """The backward of an indexed write runs in autograd's device thread, which has no Python frames."""
    weights = table().requires_grad_()
    finding = caught(lambda: F.embedding(ids(4, 77), weights).sum().backward())
    assert finding["element"]["value"] == 77
    return finding["origin"]["file"].rsplit("/", 1)[-1]


@case
def graph_replay_is_checked() -> str:
    only_cuda()
    weights, index = table(), ids(1, 2)
    F.embedding(index, weights)  # loads what must not be loaded while capturing
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rows = F.embedding(index, weights)
    graph.replay()
    assert torch.equal(rows.cpu(), weights.cpu()[[1, 2]]), "a good replay is wrong"
    seen = []
    for value in (10, 25):
        index.copy_(torch.tensor([1, value]))
        seen.append(caught(lambda: (graph.replay(), rows.cpu()))["element"]["value"])
    index.copy_(torch.tensor([3, 4]))
    graph.replay()
    assert torch.equal(rows.cpu(), weights.cpu()[[3, 4]]), "a good replay after bad ones is wrong"
    assert seen == [10, 25], seen
    usable()
    return "two bad replays, each reported once"


REPORT_ONLY = """
import sys; sys.argv = sys.argv[:1] + ["--device", {device!r}]
import proof, torch, trapline
import torch.nn.functional as F
proof.guard()
weights = torch.randn(10, 4, device=proof.DEVICE)
try:
    F.embedding(torch.tensor([1, 12], device=proof.DEVICE), weights)
    torch.cuda.synchronize()
except trapline.DeviceAssertError as error:
    print("FOUND", error.finding["element"]["value"], error.finding.get("contained"))
except Exception as error:
    print("OTHER", type(error).__name__, str(error).splitlines()[0])
"""


@case
def mapped_memory_is_read_after_a_real_assert() -> str:
    """Without a healed copy the kernel's own assert fires; what the check wrote before must still be
    readable.
    """
    only_cuda()
    environment = {**os.environ, "TRAPLINE_HEAL_CAP_MB": "0", "PYTHONPATH": os.path.dirname(__file__)}
    done = subprocess.run(
        [sys.executable, "-c", REPORT_ONLY.format(device=str(DEVICE))],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Assertion" in done.stderr, "the real assert did not fire: " + done.stderr[-300:]
    assert "FOUND 12 False" in done.stdout, done.stdout + done.stderr[-300:]
    return done.stdout.strip()


if __name__ == "__main__":
    raise SystemExit(proof.main())
