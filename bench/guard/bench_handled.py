"""What a fault costs that the program catches, against the same IndexError without the guard.

A data set that skips bad rows raises and catches thousands. Two rows: the same bad value each time, and
another one each time; the first fault of the place, which gets a whole report, is left out. Goal of both:
at most 3 times as slow.
"""

from __future__ import annotations

import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import torch  # noqa: E402
import trapline  # noqa: E402

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000


def fastest(values: list[torch.Tensor]) -> float:
    table, best = torch.zeros(3), float("inf")
    for value in values:
        start = time.perf_counter()
        try:
            table[value]
        except IndexError:
            pass
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def main() -> None:
    same = [torch.tensor([9])] * TIMES
    other = [torch.tensor([9 + i]) for i in range(TIMES)]
    plain = fastest(same), fastest(other)
    trapline.install()
    fastest(same[:1])
    for name, before, now in zip(("same value", "other values"), plain, (fastest(same), fastest(other))):
        print(f"{name}: {before:.1f} us without the guard, {now:.1f} us with it: {now / before:.1f} times")


if __name__ == "__main__":
    main()
