"""What `--watch light` adds to a training step, beside PyTorch's own means, on the CPU.

None, the watch and the peers alternate inside one process, in an order that changes every round. A figure is
the median over the rounds of (with / without) of the same round, by the process's CPU time, with quartiles.
Models of bench/guard/models.py in their small sizes. Goal: at most 1.02. The guard itself is not on.

    bench_watch.py [--models mlp,gpt2] [--seconds 8]
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(Path(__file__).parent))

import models  # noqa: E402
import torch  # noqa: E402
from torch.optim import optimizer as optimizers  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from trapline._watch import light, thorough  # noqa: E402


class NanMode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out.is_floating_point() and bool(out.isnan().any()):
            raise FloatingPointError(str(func))
        return out


@contextlib.contextmanager
def clipping() -> Iterator[None]:
    def clip(optimizer: Any, *_: Any) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_norm_(parameters, 1e9)

    handle = optimizers.register_optimizer_step_pre_hook(clip)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def installed(module: Any) -> Iterator[None]:
    module.install()
    try:
        yield
    finally:
        module.uninstall()


KINDS: dict[str, Any] = {
    "none": contextlib.nullcontext,
    "light": lambda: installed(light),
    "nan": lambda: installed(thorough),
    "anomaly": torch.autograd.detect_anomaly,
    "dispatch": NanMode,
    "clip": clipping,
}


def hold(optimizer: Any, *_: Any) -> None:
    """The same work without learning: many steps on one batch may diverge, and NaN ends the watch."""
    for group in optimizer.param_groups:
        group["lr"] = 0.0


def cpu_of(step: models.Step, count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        step()
    return time.process_time() - start


def measure(name: str, seconds: float) -> tuple[int, float, dict[str, list[float]]]:
    torch.manual_seed(0)
    step = models.MODELS[name](torch.device("cpu"), True)
    handle = optimizers.register_optimizer_step_pre_hook(hold)
    cpu_of(step, 5)
    handle.remove()
    count = max(1, int(0.2 / max(1e-5, cpu_of(step, 5) / 5)))
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    deadline, turn = time.monotonic() + seconds, 0
    while time.monotonic() < deadline or turn < 5:
        for kind in list(KINDS)[:: -1 if turn % 2 else 1]:
            with KINDS[kind]():
                # Past the first steps, which are always looked at: what lasts is measured.
                cpu_of(step, light.ALWAYS if kind == "light" else 2)
                times[kind].append(cpu_of(step, count) / count)
        turn += 1
    return turn, statistics.median(times["none"]), times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(models.MODELS))
    parser.add_argument("--seconds", type=float, default=8.0, help="time for each model's rounds")
    args = parser.parse_args()
    torch.set_num_threads(1)
    import warnings

    warnings.simplefilter("ignore")
    for name in args.models.split(","):
        turns, none, times = measure(name, args.seconds)
        print(f"{name}: {none * 1e3:.2f} ms of CPU a step, {turns} rounds")
        for kind in list(KINDS)[1:]:
            ratios = [a / b for a, b in zip(times[kind], times["none"])]
            low, _, high = statistics.quantiles(ratios, n=4)
            figures = f"{statistics.median(ratios):8.3f}   quartiles {low:.3f} {high:.3f}"
            print(f"  {kind:12s}{figures}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
