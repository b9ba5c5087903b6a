"""What the guard adds to a training step of real size, on any device: no guard, guard, guard with
`--on-fault skip`, CUDA_LAUNCH_BLOCKING=1.

No guard and the guards alternate inside one process, in an order that changes every round; a figure is the
median over the rounds of (with / without) of the same round, with the quartiles beside it.
CUDA_LAUNCH_BLOCKING is read when CUDA starts, so that peer has a process of its own and is compared by its
median. A step is timed from an idle device to an idle device, many steps at a time, as wall-clock time.
Goal: at most 1.01.

The watch for NaN is off: it looks at all of the first steps of a process, and here a guard is new in each
round. ``--watch`` adds a kind with it, timed after those steps; bench_watch.py has its price with the looks.

    bench_steps.py --device cuda [--models mlp,gpt2] [--seconds 8] [--watch] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("TRAPLINE_BUILD_DIR", str(ROOT / "build"))

import models  # noqa: E402
import torch  # noqa: E402

_LOOKED_AT = 40  # steps: in the first 32 the watch looks at everything


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--models", default=",".join(models.MODELS))
    parser.add_argument("--seconds", type=float, default=8.0, help="time for each model's rounds")
    parser.add_argument("--small", action="store_true", help="tiny models, to try the benchmark out")
    parser.add_argument("--watch", action="store_true", help="guard and watch together, too")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def seconds_of(step: models.Step, count: int, device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()  # what the steps before left in the queue is not this block's
    start = time.perf_counter()
    for _ in range(count):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


def steps_a_round(step: models.Step, device: torch.device) -> int:
    """As many steps as take about 0.1 s, at least one."""
    seconds_of(step, 3, device)  # warms the allocator and the autotuners
    return max(1, min(500, int(0.1 / seconds_of(step, 3, device))))


def plain(name: str, args: argparse.Namespace) -> float:
    """The median step without a guard in this process: for peers that are an environment variable."""
    device = torch.device(args.device)
    step = models.MODELS[name](device, args.small)
    count = steps_a_round(step, device)
    deadline = time.monotonic() + args.seconds / 2
    times = [seconds_of(step, count, device)]
    while time.monotonic() < deadline or len(times) < 3:
        times.append(seconds_of(step, count, device))
    return statistics.median(times)


def blocking(name: str, args: argparse.Namespace) -> float | None:
    """The same step under CUDA_LAUNCH_BLOCKING=1; None where there is no CUDA."""
    if torch.device(args.device).type != "cuda":
        return None
    command = [sys.executable, __file__, "--plain", "--models", name, "--device", args.device]
    command += ["--seconds", str(args.seconds), *(["--small"] if args.small else [])]
    done = subprocess.run(
        command, env={**os.environ, "CUDA_LAUNCH_BLOCKING": "1"}, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def measure(name: str, args: argparse.Namespace) -> dict[str, Any]:
    import trapline
    from trapline._guard import active
    from trapline._skip import policy

    device = torch.device(args.device)
    torch.manual_seed(0)
    step = models.MODELS[name](device, args.small)
    count = steps_a_round(step, device)
    times: dict[str, list[float]] = {"none": [], "guard": [], "skip": []}
    if args.watch:
        times["watch"] = []
    deadline = time.monotonic() + args.seconds
    turn = 0
    while time.monotonic() < deadline or turn < 5:
        for kind in list(times)[:: -1 if turn % 2 else 1]:
            if kind != "none":
                os.environ["TRAPLINE_WATCH"] = "light" if kind == "watch" else "off"
                trapline.install()
                policy.install("skip" if kind == "skip" else "raise")
                assert active.kind() == "native", "the compiled guard is not there: " + "; ".join(
                    active.notes()
                )
            for _ in range(_LOOKED_AT if kind == "watch" else 1):
                step()
            times[kind].append(seconds_of(step, count, device))
            policy.uninstall()
            trapline.uninstall()
        turn += 1
    ratios = {kind: [a / b for a, b in zip(times[kind], times["none"])] for kind in times if kind != "none"}
    quartiles = statistics.quantiles(ratios["guard"], n=4)
    none = statistics.median(times["none"])
    slow = blocking(name, args)
    return {
        "model": name,
        "step_ms": none * 1e3,
        "rounds": turn,
        "steps_a_round": count,
        "guard": statistics.median(ratios["guard"]),
        "guard_quartiles": [quartiles[0], quartiles[2]],
        "skip": statistics.median(ratios["skip"]),
        "watch": statistics.median(ratios["watch"]) if args.watch else None,
        "launch_blocking": None if slow is None else slow / none,
    }


def main() -> int:
    args = parse()
    names = [name for name in args.models.split(",") if name]
    unknown = [name for name in names if name not in models.MODELS]
    if unknown:
        print(f"bench: no model {unknown[0]}: there are {', '.join(models.MODELS)}", file=sys.stderr)
        return 2
    if args.plain:
        print(plain(names[0], args))
        return 0
    rows = []
    columns = f"{'ms':>9s}{'guard':>9s}{'quartiles':>17s}{'skip':>9s}{'watch':>9s}{'LAUNCH_BLOCKING':>17s}"
    print(f"{'step on ' + args.device:24s}{columns}")
    for name in names:
        row = measure(name, args)
        rows.append(row)
        low, high = row["guard_quartiles"]
        peer = "-" if row["launch_blocking"] is None else f"{row['launch_blocking']:.3f}"
        watch = "-" if row["watch"] is None else f"{row['watch']:.4f}"
        figures = f"{row['step_ms']:9.2f}{row['guard']:9.4f}{low:9.4f}{high:8.4f}{row['skip']:9.4f}"
        print(f"{name:24s}{figures}{watch:>9s}{peer:>17s}", flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
