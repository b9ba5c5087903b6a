"""What a guarded call costs the host when its check runs on a device: with the guard against without.

The device is that of ``trapline run --cpu`` with late work: its streams are threads, which are held while
calls are timed; what is timed is the CPU time of the calling thread alone. A launch is a call of the
stand-in's driver (a real one takes microseconds, too, others). Guard off and on take turns in every round; a
figure is the median over the rounds, with its quartiles. Goal: at most 4 microseconds a call.
"""

from __future__ import annotations

import ctypes
import gc
import os
import statistics
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python")]
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))
os.environ["TRAPLINE_CPU"] = "1"
os.environ["TRAPLINE_CPU_LATE"] = "0"

from trapline import _boot, _cpu_backend  # noqa: E402

_boot.watch_for_cpu()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from trapline import _adapter, _build, _cpu, _device, _paths  # noqa: E402

torch.set_num_threads(1)
gc.disable()  # a collection falls on whoever allocates next
_cpu.install()
if _cpu_backend.device is None:
    sys.exit(f"trapline: bench: {_cpu_backend.notes}")

CALLS, ROUNDS = 100, int(sys.argv[1]) if len(sys.argv) > 1 else 30
D = "cuda"

driver = ctypes.CDLL(os.environ["TRAPLINE_CUDA_DRIVER"])
Work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
driver.fake_cuda_enqueue.argtypes = [ctypes.c_void_p, Work, ctypes.c_void_p]


def calls():
    table, scores = torch.randn(100, 8).to(D), torch.randn(32, 10).to(D)
    weight, logits = table.clone().requires_grad_(), scores.clone().requires_grad_()
    index, labels = torch.randint(0, 100, (32,)).to(D), torch.randint(0, 10, (32,)).to(D)
    column, rows = labels.view(32, 1), torch.randn(32, 8).to(D)
    yield "embedding, no_grad", lambda: F.embedding(index, table)
    yield "embedding, the tensor is known", lambda: F.embedding(index, weight)
    yield "index_select", lambda: table.index_select(0, index)
    yield "gather", lambda: scores.gather(1, column)
    yield "index", lambda: table[index]
    yield "index_add_", lambda: table.index_add_(0, index, rows)
    yield "cross_entropy, no_grad", lambda: F.cross_entropy(scores, labels)
    yield "cross_entropy, the labels are known", lambda: F.cross_entropy(logits, labels)


def step():
    """Forward, backward and step of a small classifier over ids."""
    from torch import nn

    table, net = nn.Embedding(100, 8).to(D), nn.Linear(8, 10).to(D)
    optimizer = torch.optim.SGD([*table.parameters(), *net.parameters()], lr=0.01)
    index, labels = torch.randint(0, 100, (32,)), torch.randint(0, 10, (32,))

    def one():
        optimizer.zero_grad()
        F.cross_entropy(net(table(index.to(D))), labels.to(D)).backward()
        optimizer.step()

    return one


def host_seconds(call, count, hold=True):
    """CPU time of this thread for `count` calls, with the device held meanwhile."""
    opened = threading.Event()
    wait = Work(lambda _: opened.wait() and None)
    torch.cuda.synchronize()
    if hold:
        driver.fake_cuda_enqueue(None, wait, None)
    began = time.thread_time()
    for _ in range(count):
        call()
    taken = time.thread_time() - began
    opened.set()
    torch.cuda.synchronize()
    return taken / count


def main() -> None:
    adapter = _adapter.load(_build.build(os.path.join(_paths.build_dir(), "adapters")))
    adapter.install(lambda violation: SystemExit(f"bench: unexpected violation of {violation['contract']}"))
    _device.install(adapter)
    torch.manual_seed(0)
    print(f"host time of a guarded call, microseconds; {ROUNDS} rounds of {CALLS} calls")

    def compare(name, call, count, hold):
        for on in (True, False):
            adapter.set_enabled(on)
            host_seconds(call, count, hold)
        added, plain = [], []
        launches = adapter.info()["device"]["launches"]
        for _ in range(ROUNDS):
            adapter.set_enabled(False)
            without = host_seconds(call, count, hold)
            adapter.set_enabled(True)
            added.append(host_seconds(call, count, hold) - without)
            plain.append(without)
        launched = (adapter.info()["device"]["launches"] - launches) / ROUNDS / count
        low, high = sorted(added)[len(added) // 4] * 1e6, sorted(added)[-len(added) // 4] * 1e6
        print(
            f"{name}: {statistics.median(plain) * 1e6:.1f} without the guard, "
            f"+{statistics.median(added) * 1e6:.2f} ({low:.2f} to {high:.2f}), {launched:.2f} checks",
            flush=True,
        )

    for name, call in calls():
        compare(name, call, CALLS, True)
    compare("training step", step(), 20, False)


if __name__ == "__main__":
    main()
