"""What it costs to have output passed through and read: 1 GB through `trapline supervise` and through `cat`
alone, in turns, in one run. Prints both times and their ratio (1: nothing).

    passthrough.py BUILD [ROUNDS]
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

SIZE = 1 << 30
WRITER = f"""
import os
line = b"2026-11-23 10:00:00 INFO step 12345 loss 0.3456 lr 1e-4 grad 0.22\\n" * 1000
for _ in range({SIZE} // len(line)):
    os.write(1, line)
"""
PLAIN = [sys.executable, "-S", "-c", WRITER]


def seconds(command: list) -> float:
    """Of a pipeline of the command and `cat`, which reads it all."""
    began = time.monotonic()
    first = subprocess.Popen(command, stdout=subprocess.PIPE)
    last = subprocess.Popen(["cat"], stdin=first.stdout, stdout=subprocess.DEVNULL)
    first.stdout.close()
    if first.wait() or last.wait():
        raise SystemExit("trapline: bench: the program failed")
    return time.monotonic() - began


def main() -> None:
    trapline = Path(sys.argv[1]) / "bin" / "trapline"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    times = {"cat": [], "supervise": []}
    for _ in range(rounds):
        times["cat"].append(seconds(PLAIN))
        times["supervise"].append(seconds([str(trapline), "supervise", "--", *PLAIN]))
    medians = {name: statistics.median(all_of_them) for name, all_of_them in times.items()}
    ratios = [plain / ours for plain, ours in zip(times["cat"], times["supervise"])]
    for name, median in medians.items():
        print(f"{name:10} {median:.2f} s for 1 GB ({SIZE / median / 1e9:.1f} GB/s)")
    print(f"speed of supervise against cat alone: {statistics.median(ratios):.2f} (goal 0.8)")


if __name__ == "__main__":
    main()
