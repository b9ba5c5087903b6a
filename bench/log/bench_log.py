#!/usr/bin/env python3
"""How fast `trapline explain` goes through logs, as a ratio against `grep -cF Assertion` on the same files.

Four inputs are generated below the build folder and deleted afterwards: a log without a fault, one with a
fault at its end, one in which every hundredth line is an assertion, and a folder of 10,000 rank files of
which one has failed. Every program runs once to warm the page cache, then the two take turns; the medians are
compared. A ratio of at least 1.00 means: as fast as grep, or faster.

    python bench/log/bench_log.py            # 256 MiB per log
    python bench/log/bench_log.py --size 1G
"""

import argparse
import multiprocessing
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
ASSERT = (
    "../aten/src/ATen/native/cuda/Indexing.cu:1237: indexSelectSmallIndex: block: [{block},0,0], "
    "thread: [{thread},0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
)
FAULT = (
    ASSERT.format(block=3, thread=64)
    + "Traceback (most recent call last):\n"
    + '  File "/home/user/train.py", line 88, in <module>\n    main()\n'
    + '  File "/home/user/train.py", line 61, in main\n    loss = model(ids).loss\n'
    + "RuntimeError: CUDA error: device-side assert triggered\n"
)


def ordinary(rng: random.Random, lines: int) -> list[str]:
    """Lines as healthy training and serving programs write them."""
    text = []
    for step in range(lines):
        kind = rng.random()
        if kind < 0.6:
            text.append(
                f"2024-05-11 21:{rng.randrange(60):02}:{rng.randrange(60):02},{rng.randrange(1000):03} "
                "- INFO - "
                f"train.py:120 - epoch {rng.randrange(30)} step {step:06} loss {rng.uniform(0, 4):.4f} "
                f"lr {rng.uniform(0, 1e-3):.6f} grad_norm {rng.uniform(0, 9):.2f} "
                f"samples/s {rng.uniform(9, 2e3):.1f}\n"
            )
        elif kind < 0.8:
            text.append(f"[step {step:7}] loss {rng.uniform(0, 4):.4f} tokens/s {rng.randrange(99999)}\n")
        elif kind < 0.95:
            text.append(
                f"INFO:     10.0.0.{rng.randrange(255)}:{rng.randrange(65536)} - "
                '"POST /v1/completions HTTP/1.1" 200 OK\n'
            )
        else:
            text.append(
                f"saving checkpoint to outputs/run/checkpoint-{step} ({rng.uniform(1, 20):.2f} GiB)\n"
            )
    return text


def write_log(path: Path, size: int, asserts: bool = False, fault: bool = False) -> None:
    """About ``size`` bytes: pieces of a few MiB that differ, over and over."""
    rng = random.Random(7)
    pieces = []
    for _ in range(4):
        lines = ordinary(rng, 20_000)
        if asserts:
            for k in range(0, len(lines), 100):
                lines[k] = ASSERT.format(block=rng.randrange(4096), thread=rng.randrange(128))
        pieces.append("".join(lines).encode())
    written = 0
    with open(path, "wb") as out:
        while written < size:
            written += out.write(pieces[rng.randrange(4)][: size - written])
        out.write(b"\n")
        if fault:
            out.write(FAULT.encode())


def write_ranks(folder: Path, count: int, size: int) -> None:
    """``count`` files of about ``size`` bytes each; rank 4711 (or the middle one) has the fault."""
    rng = random.Random(11)
    lines = "".join(ordinary(rng, 4000)).encode()
    folder.mkdir()
    for rank in range(count):
        start = rng.randrange(max(1, len(lines) - size))
        start = lines.find(b"\n", start) + 1
        end = lines.find(b"\n", start + size) + 1 or len(lines)
        fault = FAULT.encode() if rank == min(4711, count // 2) else b""
        (folder / f"rank{rank}.log").write_bytes(lines[start:end] + fault)


def run(command: list[str]) -> tuple[float, int]:
    """Seconds of wall clock and the peak memory in KiB of one command.

    Its output goes into a file: grep stops at the first match when it sees /dev/null. The peak counts this
    program's own memory before the exec, which is why the inputs are made by another process.
    """
    with tempfile.TemporaryFile() as out:
        before = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
        return time.perf_counter() - before, usage.ru_maxrss


def make(function: Callable[..., None], *args: object, **kwargs: object) -> None:
    """Calls ``function`` in a process of its own."""
    worker = multiprocessing.get_context("fork").Process(target=function, args=args, kwargs=kwargs)
    worker.start()
    worker.join()
    if worker.exitcode != 0:
        raise SystemExit("trapline: bench: the inputs could not be written: is the disk full?")


def compare(name: str, ours: list[str], target: Path, rounds: int) -> bool:
    """Prints one row; True when we are at least as fast and small enough."""
    grep = (
        ["grep", "-r", "-cF", "Assertion", str(target)]
        if target.is_dir()
        else ["grep", "-cF", "Assertion", str(target)]
    )
    own = [*ours, str(target)]
    run(grep), run(own)
    times: tuple[list[float], list[float]] = ([], [])
    peak = 0
    for _ in range(rounds):
        times[0].append(run(grep)[0])
        seconds, memory = run(own)
        times[1].append(seconds)
        peak = max(peak, memory)
    theirs, mine = statistics.median(times[0]), statistics.median(times[1])
    ratios = sorted(g / o for g, o in zip(*times))
    print(
        f"{name:28} grep {theirs:7.3f} s   trapline {mine:7.3f} s   ratio {theirs / mine:5.2f} "
        f"({ratios[0]:.2f} .. {ratios[-1]:.2f})   peak {peak / 1024:5.1f} MiB",
        flush=True,
    )
    return mine <= theirs and peak < 64 * 1024


def size_of(text: str) -> int:
    unit = UNITS.get(text[-1].upper(), 1)
    return int(text[:-1] if unit > 1 else text) * unit


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=size_of, default=size_of("256M"), help="of each log: 256M, 1G")
    parser.add_argument("--ranks", type=int, default=10_000, help="files in the folder of ranks")
    parser.add_argument("--rank-size", type=size_of, default=size_of("16K"), help="of each of them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--command", default=str(ROOT / "build/bin/trapline") + " explain", help="what is measured"
    )
    parser.add_argument("--folder", default=str(ROOT / "build"), help="where the inputs are made")
    args = parser.parse_args()
    ours = args.command.split()
    if shutil.which(ours[0]) is None:
        print(
            f"trapline: bench: {ours[0]} is missing: build it first, or name another with --command",
            file=sys.stderr,
        )
        return 2
    os.environ["LC_ALL"] = os.environ.get("LC_ALL", "C.UTF-8")
    version = subprocess.run(["grep", "--version"], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )[0]
    print(
        f"{version}; LC_ALL={os.environ['LC_ALL']}; {os.cpu_count()} CPUs; "
        f"medians of {args.rounds} rounds, in turns"
    )
    good = True
    with tempfile.TemporaryDirectory(prefix="bench-log-", dir=args.folder) as folder:
        log = Path(folder) / "job.log"
        for name, options in (
            ("no fault", {}),
            ("one fault at the end", {"fault": True}),
            ("1 % assertion lines", {"asserts": True}),
        ):
            make(write_log, log, args.size, **options)
            good = compare(f"{args.size >> 20} MiB, {name}", ours, log, args.rounds) and good
            log.unlink()
        ranks = Path(folder) / "ranks"
        make(write_ranks, ranks, args.ranks, args.rank_size)
        good = compare(f"{args.ranks} rank files", ours, ranks, args.rounds) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
