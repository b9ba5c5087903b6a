"""The three guards side by side: the compiled adapter, the kernels in C for any torch, and all in Python.

In every round each guard in turn, in another order, is installed into the same process: one operation many
times, and training steps of small models, in CPU time of one thread. A figure is the median over the rounds
of the difference to no guard (an operation, in microseconds) or of the ratio to it (a step) in the same
round, with the quartiles beside it. Goals for the kernels in C: at most 5 us a call, and half of what a step
costs in Python.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).parent))

import common
import models
import torch
import torch.nn.functional as F
from trapline._guard import active, kernel, pure

ROUNDS, CALLS = 25, 2000
KINDS = ("compiled adapter", "kernels in C", "all in Python")


def operations() -> dict[str, Callable[[], Any]]:
    table, ids = torch.randn(1000, 16), torch.randint(0, 1000, (16,))
    logits, labels = torch.randn(16, 10), torch.randint(0, 10, (16,))
    rows = torch.randint(0, 16, (16,))
    return {
        "embedding": lambda: torch.embedding(table, ids),
        "cross_entropy": lambda: F.cross_entropy(logits, labels),
        "index": lambda: logits[rows],
        "gather": lambda: logits.gather(1, labels.view(-1, 1)),
    }


def seconds(call: Callable[[], Any], count: int) -> float:
    start = time.thread_time()
    for _ in range(count):
        call()
    return (time.thread_time() - start) / count


def install(kind: str, native: Any) -> Callable[[], None]:
    if kind == KINDS[0]:
        native.install(common.fail)
        return native.uninstall
    pure.install(common.fail, kernel.load() if kind == KINDS[1] else None)
    return pure.uninstall


def measure(call: Callable[[], Any], count: int, native: Any) -> dict[str, list[tuple[float, float]]]:
    """(without, with) of every round, by kind."""
    out: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for number in range(ROUNDS):
        order = list(KINDS)
        random.Random(number).shuffle(order)
        for kind in order:
            without = seconds(call, count)
            uninstall = install(kind, native)
            seconds(call, max(1, count // 20))
            out[kind].append((without, seconds(call, count)))
            uninstall()
    return out


def quartiles(values: list[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return middle, low, high


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    native = active.load(common.plain_adapter())
    print(f"{'one call: us more than without':34}" + "".join(f"{kind:>26}" for kind in KINDS))
    for name, call in operations().items():
        found = measure(call, CALLS, native)
        cells = (quartiles([(b - a) * 1e6 for a, b in found[kind]]) for kind in KINDS)
        print(
            f"{name:34}"
            + "".join(f"{m:>12.2f} ({low:.2f} to {high:.2f})".rjust(26) for m, low, high in cells)
        )
    print(f"{'one step: times as long':34}" + "".join(f"{kind:>26}" for kind in KINDS))
    for name in models.MODELS:
        step = models.MODELS[name](torch.device("cpu"), True)
        found = measure(step, max(1, int(0.05 / seconds(step, 5))), native)
        cells = (quartiles([b / a for a, b in found[kind]]) for kind in KINDS)
        print(
            f"{name:34}"
            + "".join(f"{m:>12.3f} ({low:.3f} to {high:.3f})".rjust(26) for m, low, high in cells)
        )


if __name__ == "__main__":
    main()
