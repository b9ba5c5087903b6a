"""What the guard adds to a training step: embedding, MLP, cross entropy, SGD; batch 32, one thread.

Two sizes: a tiny model whose step is little more than Python and dispatch, and one that computes for about a
millisecond. What the guard adds is the same few microseconds in both: it has four guarded calls in a step.

"as by run" is the whole of it, as `trapline run` brings it into a program, and "as by run, skip" the same
with `--on-fault skip`, which heals and wraps the optimizer's step.

Each configuration runs in every round, in alternating order, in CPU time; a figure is the median over the
rounds of (with / without - 1) of the same round, and the same of the fastest rounds, which other programs on
the machine disturb less. Peers: an empty RecordFunction callback and an empty
TorchDispatchMode. Goal: at most +1 % with the guard on.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time

from common import adapter, fail

guard = adapter()

import torch  # noqa: E402
import trapline  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from trapline._guard import active  # noqa: E402
from trapline._skip import policy  # noqa: E402

STEPS = 50
FIRST = 40  # the watch, a part of "as by run", looks at each of a run's first 32 steps
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
SIZES = {"tiny": (32, 64), "small": (128, 512)}  # width of the embedding, width of the hidden layer


class Nothing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Model(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, width)
        self.mlp = nn.Sequential(nn.Linear(8 * width, hidden), nn.ReLU(), nn.Linear(hidden, 10))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.mlp(self.table(tokens).flatten(1))


@contextlib.contextmanager
def guarded(on: bool):
    guard.install(fail)
    guard.set_enabled(on)
    yield
    guard.uninstall()


@contextlib.contextmanager
def whole(mode: str):
    trapline.install()
    assert active.kind() == "native", active.notes()
    policy.install(mode)
    yield
    policy.uninstall()
    trapline.uninstall()


@contextlib.contextmanager
def recorded():
    guard.record_function(True)
    yield
    guard.record_function(False)


CONFIGURATIONS = {
    "no guard": contextlib.nullcontext,
    "guard off": lambda: guarded(False),
    "guard on": lambda: guarded(True),
    "as by run": lambda: whole("raise"),
    "as by run, skip": lambda: whole("skip"),
    "RecordFunction no-op": recorded,
    "TorchDispatchMode no-op": Nothing,
}


def measure(size: str) -> None:
    torch.manual_seed(0)
    model = Model(*SIZES[size])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    tokens, labels = torch.randint(0, 1000, (64, 32, 8)), torch.randint(0, 10, (64, 32))

    def steps(count: int) -> float:
        start = time.thread_time()
        for i in range(count):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(tokens[i % 64]), labels[i % 64]).backward()
            optimizer.step()
        return (time.thread_time() - start) / count * 1e6

    steps(300)
    times: dict[str, list[float]] = {name: [] for name in CONFIGURATIONS}
    for turn in range(ROUNDS):
        for name in list(CONFIGURATIONS)[:: -1 if turn % 2 else 1]:
            with CONFIGURATIONS[name]():
                steps(FIRST)
                times[name].append(steps(STEPS))
    print(f"{'training step, ' + size:28s}{'median us':>10s}{'added':>10s}{'fastest':>12s}")
    for name, values in times.items():
        added = statistics.median(a / b - 1 for a, b in zip(values, times["no guard"]))
        fastest = min(values) / min(times["no guard"]) - 1
        print(f"{name:28s}{statistics.median(values):10.1f}{100 * added:+8.2f} %{100 * fastest:+10.2f} %")


if __name__ == "__main__":
    for name in SIZES:
        measure(name)
