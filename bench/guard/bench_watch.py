"""What `--watch light` adds to a training step, beside PyTorch's own means.

Without and with it alternate inside one process, in blocks of 15 milliseconds: none, light, none. A figure
is the median over the rounds of (with / the two without around it), by the thread's CPU time, with quartiles;
behind it the same of the sums, which the steps that are looked at are in. With `--device cuda` the models are
of full size, a block takes 100 milliseconds, and time is the clock's, from an idle device to an idle device.
The watch stays installed; where it is off, what it has put into torch is taken out. In every 24th round the
peers come, too. Models of bench/guard/models.py, on the CPU in their small sizes. Goal: at most 1.02. The
guard itself is not on. Lightning's `detect_anomaly=True` is PyTorch's detect_anomaly; its
`terminate_on_nan`, which 2.0 took out, is written again here from what it did after each batch.

With `--full` they are of full size on the CPU, too: two of them are made for a GPU.

    bench_watch.py [--device cuda] [--models mlp,gpt2] [--seconds 40] [--full]
"""

from __future__ import annotations

import argparse
import contextlib
import os
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
from trapline._watch import light, thorough, watching  # noqa: E402

on_device = False


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
def terminating() -> Iterator[None]:
    """Lightning 1.x: the loss and all parameters, after each batch."""

    def check(optimizer: Any, *_: Any) -> None:
        for group in optimizer.param_groups:
            for p in group["params"]:
                if not torch.isfinite(p).all():
                    raise ValueError("a parameter is not finite")

    def checked(loss: Any, *args: Any, **kwargs: Any) -> None:
        if not torch.isfinite(loss).all():
            raise ValueError("the loss is not finite")
        backward(loss, *args, **kwargs)

    backward = torch.autograd.backward
    handle = optimizers.register_optimizer_step_post_hook(check)
    torch.autograd.backward = checked
    try:
        yield
    finally:
        torch.autograd.backward = backward
        handle.remove()


@contextlib.contextmanager
def installed(module: Any) -> Iterator[None]:
    module.install()
    try:
        yield
    finally:
        module.uninstall()


PEERS: dict[str, Any] = {
    "nan": lambda: installed(thorough),
    "anomaly": torch.autograd.detect_anomaly,
    "dispatch": NanMode,
    "clip": clipping,
    "terminate": terminating,
}


class Switch:
    """Takes out of torch what the watch has put there, and puts it back."""

    def __init__(self) -> None:
        self._watch = light._light
        self._wrapper = torch.autograd.backward
        self._hooks = (optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks)
        self._mine = [dict(hooks) for hooks in self._hooks]
        self._off = 0.0
        if not self._watch.hot.armed and not on_device:
            raise SystemExit("bench: the watch counts these steps in Python")

    def off(self) -> None:
        self._off = time.perf_counter()
        torch.autograd.backward = self._wrapper.__wrapped__
        for hooks in self._hooks:
            hooks.clear()
        for module in list(self._watch.roots.known):
            module.__dict__.pop("_compiled_call_impl")

    def on(self) -> None:
        torch.autograd.backward = self._wrapper
        for hooks, mine in zip(self._hooks, self._mine):
            hooks.update(mine)
        for module, root in list(self._watch.roots.known.items()):  # held by nobody else, as in a program
            module.__dict__["_compiled_call_impl"] = root
        # Its looks have a share of the time: of that in which it was on.
        away = time.perf_counter() - self._off
        self._watch.budget.first += away
        self._watch.budget.next += away
        late = self._watch.device._late
        late._began, late._next = late._began + away, late._next + away


def hold(optimizer: Any, *_: Any) -> None:
    """The same work without learning: many steps on one batch may diverge, and NaN ends the watch."""
    for group in optimizer.param_groups:
        group["lr"] = 0.0


def cost_of(step: models.Step, count: int) -> float:
    """Seconds a step: of this thread's CPU time, or with a device of the clock."""
    step()  # what has changed is cold
    clock = time.perf_counter if on_device else time.thread_time
    if on_device:
        torch.cuda.synchronize()
    start = clock()
    for _ in range(count):
        step()
    if on_device:
        torch.cuda.synchronize()
    return (clock() - start) / count


def measure(
    name: str, device: str, seconds: float, small: bool
) -> tuple[float, dict[str, list[tuple[float, float]]]]:
    torch.manual_seed(0)
    step = models.MODELS[name](torch.device(device), small)
    handle = optimizers.register_optimizer_step_pre_hook(hold)
    cost_of(step, 5)
    handle.remove()
    count = max(1, int((0.1 if on_device else 0.015) / max(1e-5, cost_of(step, 5))))
    ratios: dict[str, list[tuple[float, float]]] = {kind: [] for kind in ["light", *PEERS]}
    with installed(light):
        cost_of(step, watching.ALWAYS + 8)  # what lasts is measured
        deadline = time.monotonic() + seconds
        # Looked-at steps become rare: their share of the time is kept from here on.
        while not on_device and not light._light.hot.armed and time.monotonic() < deadline:
            cost_of(step, 8)
        switch, turn, plain = Switch(), 0, []
        switch.off()
        while time.monotonic() < deadline or turn < 48:
            kinds = ["light", *(PEERS if turn % 24 == 0 else ())]
            for kind in kinds:
                before = cost_of(step, count)
                if kind == "light":
                    switch.on()
                    cost = cost_of(step, count)
                    switch.off()
                else:
                    with PEERS[kind]():
                        cost = cost_of(step, count)
                after = cost_of(step, count)
                plain += [before, after]
                ratios[kind].append((cost, (before + after) / 2))
            turn += 1
        switch.on()
    return statistics.median(plain), ratios


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(models.MODELS))
    parser.add_argument("--seconds", type=float, default=40.0, help="time for each model's rounds")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--full", action="store_true", help="models of full size on the CPU")
    args = parser.parse_args()
    global on_device
    on_device = args.device != "cpu"
    torch.set_num_threads(1)
    import warnings

    warnings.simplefilter("ignore")
    for name in args.models.split(","):
        plain, ratios = measure(name, args.device, args.seconds, not (on_device or args.full))
        kind = "" if on_device else " of CPU"
        print(f"{name}: {plain * 1e3:.2f} ms{kind} a step, load {os.getloadavg()[0]:.0f}")
        for kind, known in ratios.items():
            low, middle, high = statistics.quantiles([a / b for a, b in known], n=4)
            whole = sum(a for a, _ in known) / sum(b for _, b in known)
            figures = f"{middle:8.3f}   quartiles {low:.3f} {high:.3f}   of sums {whole:.3f}"
            print(f"  {kind:10s}{figures}   {len(known)} pairs", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
