"""What the checks add to a compiled training step: the models of bench_train.py, model and loss in one graph.

The step is compiled twice, with and without checks, and both run in every round in alternating order, in CPU
time. Two figures: the median over the rounds of (with / without - 1) of the same round, and the same of the
fastest rounds, which other programs on the machine disturb less. Beside it the checks of one step, called
again and again with what the step has called them with. Goal: at most +1 %.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import torch  # noqa: E402
import torch._inductor.compile_fx  # noqa: E402
import trapline  # noqa: E402
from torch import nn  # noqa: E402
from trapline import _compile  # noqa: E402

STEPS = 10
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
CALLS = 20_000
SIZES = {"tiny": (32, 64), "small": (128, 512)}  # widths of embedding and hidden layer


class Model(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, width)
        self.mlp = nn.Sequential(nn.Linear(8 * width, hidden), nn.ReLU(), nn.Linear(hidden, 10))

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.mlp(self.table(tokens).flatten(1)), labels)


def compiled(size: str, checks: bool):
    """A function that runs some steps, and the CPU time it takes."""
    torch.manual_seed(0)
    (_compile.install if checks else _compile.uninstall)()
    model = Model(*SIZES[size])
    # Code of its own: Dynamo keeps what it compiled with the code, and would take one step for the other.
    own = Model.forward.__code__.replace(co_name=f"forward_{size}_{checks}")
    model.forward = types.MethodType(types.FunctionType(own, globals()), model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    tokens, labels = torch.randint(0, 1000, (64, 32, 8)), torch.randint(0, 10, (64, 32))
    step = torch.compile(model, fullgraph=True)

    def steps(count: int) -> float:
        start = time.thread_time()
        for i in range(count):
            optimizer.zero_grad()
            step(tokens[i % 64], labels[i % 64]).backward()
            optimizer.step()
        return (time.thread_time() - start) / count

    steps(10)
    return steps


def checks_of(steps) -> list[tuple]:
    """What the checks of one step are called with."""
    namespace, calls = torch.ops.trapline, []
    direct = namespace.checked
    namespace.checked = lambda *arguments: (calls.append(arguments), direct(*arguments))[1]
    try:
        steps(1)
    finally:
        namespace.checked = direct
    return calls


def alone(calls: list[tuple]) -> float:
    """CPU time of these checks."""
    best = float("inf")
    for _ in range(5):
        start = time.thread_time()
        for _ in range(CALLS):
            for argument, others, numbers, site in calls:
                torch.ops.trapline.checked(argument, others, numbers, site)
        best = min(best, (time.thread_time() - start) / CALLS)
    return best


def measure(size: str) -> None:
    plain, checked = compiled(size, False), compiled(size, True)
    took = {plain: [], checked: []}
    for number in range(ROUNDS):
        for steps in (plain, checked) if number % 2 else (checked, plain):
            took[steps].append(steps(STEPS))
    ratio = statistics.median(b / a - 1 for a, b in zip(took[plain], took[checked]))
    extra = statistics.median(b - a for a, b in zip(took[plain], took[checked]))
    fastest = min(took[checked]) / min(took[plain]) - 1
    calls = checks_of(checked)
    print(
        f"{size:8} {statistics.median(took[plain]) * 1e6:8.0f} us a step without checks, with them "
        f"{ratio * 100:+6.1f} % ({extra * 1e6:+.1f} us), fastest {fastest * 100:+6.1f} %; "
        f"{len(calls)} checks alone {alone(calls) * 1e6:.2f} us",
        flush=True,
    )


def main() -> None:
    torch.set_num_threads(1)
    trapline.install()
    if not trapline.is_active():
        sys.exit("trapline: bench: the guard is not active: build it")
    for size in SIZES:
        measure(size)


if __name__ == "__main__":
    main()
