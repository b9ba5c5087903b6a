"""A training step under ``trapline run --cpu`` against the same on plain CPU tensors: one thread, no guard.

The models are those of bench_train.py and, shrunk, those of the steps of real size. Both devices run in every
round, in alternating order, in CPU time of the process; a figure is the median over the rounds of one over
the other in the same round, and the same of the fastest rounds. Goal: at most 1.5 times.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench" / "guard")]
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))
os.environ["TRAPLINE_CPU"] = "1"

from trapline import _boot  # noqa: E402
from trapline._cpu import backend  # noqa: E402

_boot.watch_for_cpu()

import torch  # noqa: E402
from trapline._cpu import redirect  # noqa: E402

redirect.install()
if backend.device is None:
    sys.exit(f"trapline: bench: {backend.notes}")

import models  # noqa: E402

STEPS, ROUNDS = 20, int(sys.argv[1]) if len(sys.argv) > 1 else 20


def tiny(width, hidden):
    from torch import nn

    def make(device, small):
        table, net = (
            nn.Embedding(1000, width).to(device),
            nn.Sequential(nn.Linear(8 * width, hidden), nn.ReLU(), nn.Linear(hidden, 10)).to(device),
        )
        optimizer = torch.optim.SGD([*table.parameters(), *net.parameters()], lr=0.01)
        tokens = torch.randint(0, 1000, (32, 8)).to(device)
        labels = torch.randint(0, 10, (32,)).to(device)

        def step():
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(table(tokens).flatten(1)), labels).backward()
            optimizer.step()

        return step

    return make


def seconds(step):
    began = time.process_time()
    for _ in range(STEPS):
        step()
    return (time.process_time() - began) / STEPS


def main():
    torch.set_num_threads(1)
    makers = {"tiny": tiny(32, 64), "small": tiny(128, 512)}
    makers |= {name: getattr(models, name) for name in ("mlp", "gpt2", "resnet", "recommender")}
    for name, make in makers.items():
        steps = [make(torch.device(device), True) for device in ("cpu", "cuda")]
        took = [[], []]
        for step in steps:
            seconds(step)
        for number in range(ROUNDS):
            for which in (0, 1) if number % 2 else (1, 0):
                took[which].append(seconds(steps[which]))
        ratio = statistics.median(there / here for here, there in zip(*took))
        fastest = min(took[1]) / min(took[0])
        print(
            f"{name:9} {min(took[0]) * 1e6:8.0f} us a step on the CPU, {min(took[1]) * 1e6:8.0f} us on the "
            f"device: {ratio:.2f} times, fastest rounds {fastest:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
