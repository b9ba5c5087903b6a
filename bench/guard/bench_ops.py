"""What the guard adds to one operation, in ns: the difference to no guard in the same run.

Loops run in C++ on one thread, in CPU time, with 16-element indices, under 18 Python frames. Each operation
is measured without, off and on in turn, and a figure is the median over all turns of (with - without) of the
same turn. `off`: hooks in place, switched off; `on`: checking. The peer is an empty callback of
torch's own RecordFunction, which neither checks nor keeps anything.
Goals: unguarded operations within noise; the six hottest (*) at most +200 ns; others at most +400 ns.
"""

from __future__ import annotations

import statistics
import sys

from common import adapter, fail

HOT = {"embedding", "nll_loss_forward", "nll_loss_backward", "index", "gather", "index_select"}
UNGUARDED = {"add", "view"}
REPEAT = 2000
TURNS = int(sys.argv[1]) if len(sys.argv) > 1 else 41


def deep(frames: int, name: str) -> float:
    return guard.bench(name, REPEAT) if frames == 0 else deep(frames - 1, name)


def one_turn(name: str) -> dict[str, float]:
    """ns per call without the guard, with its hooks off, with its hooks on; then the same for the peer."""
    figures = {"none": deep(17, name)}
    guard.install(fail)
    guard.set_enabled(False)
    figures["off"] = deep(17, name)
    guard.set_enabled(True)
    figures["on"] = deep(17, name)
    guard.uninstall()
    return figures


def peer_turn(name: str) -> dict[str, float]:
    figures = {"none": deep(17, name)}
    guard.record_function(True)
    figures["RecordFunction"] = deep(17, name)
    guard.record_function(False)
    return figures


def added(turns: list[dict[str, float]], column: str) -> float:
    return statistics.median(figures[column] - figures["none"] for figures in turns)


def kind(name: str) -> str:
    if name in UNGUARDED:
        return "unguarded"
    return "*" if name in HOT else ""


def main() -> None:
    names = sorted(guard.bench_names(), key=lambda name: (name in UNGUARDED, name not in HOT, name))
    print(f"{'operation':18s}{'':10s}{'no guard':>10s}{'off':>8s}{'on':>8s}{'RecordFunction':>16s}   (ns)")
    for name in names:
        one_turn(name)
        turns = [one_turn(name) for _ in range(TURNS)]
        peers = [peer_turn(name) for _ in range(TURNS // 4)]
        plain = statistics.median(figures["none"] for figures in turns)
        print(f"{name:18s}{kind(name):10s}{plain:10.0f}", end="")
        print(f"{added(turns, 'off'):+8.0f}{added(turns, 'on'):+8.0f}", end="")
        print(f"{added(peers, 'RecordFunction'):+16.0f}")


guard = adapter()
if __name__ == "__main__":
    main()
