#!/usr/bin/env python3
"""A server whose CUDA context is lost to one request, and who keeps it: the same load for each, side by side.

The server is that of examples/server, on the CUDA device made of the CPU. Good requests come at a steady
rate, each on a connection of its own. One request fails the model's own assertion on the device, which no
guard stands before; its client sends it again later. What became of each request is counted from the
client's side; the server notes which connections it has accepted: these are in flight.

    python bench/supervise/bench_supervise.py                        # all: a quarter of an hour
    python bench/supervise/bench_supervise.py --only trapline --seconds 20 --bad 3 10
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path

import contenders
import load


def streaks(record: load.Record, counts) -> float:
    """Seconds from the first of a row of such answers to the request after it that was answered well."""
    seconds, since = 0.0, None
    for one in sorted(record.good, key=lambda outcome: outcome.began):
        if counts(one) and since is None:
            since = one.began
        elif one.status == 200 and since is not None:
            seconds, since = seconds + one.began - since, None
    return seconds + (record.now() - since if since is not None else 0.0)


def overlaps(one: load.Outcome, bad: list[load.Outcome]) -> bool:
    return any(one.began <= other.ended and one.ended >= other.began for other in bad)


def is_refused(one: load.Outcome) -> bool:
    try:
        return 400 <= one.status <= 499 and json.loads(one.body).get("refused") is True
    except ValueError:
        return False


def answer(one: load.Outcome) -> str:
    return "refused" if is_refused(one) else str(one.status or "closed")


def red_after(record: load.Record, bad: load.Outcome) -> str:
    red = [one.at for one in record.ready if one.at >= bad.began and one.status != 200]
    return f"{(red[0] - bad.began) * 1000:.0f} ms" if red else "not seen"


def row(one: contenders.Contender, record: load.Record) -> dict[str, str]:
    taken = one.accepted()
    lost = [outcome for outcome in record.good if outcome.status != 200]
    in_flight = [
        outcome
        for outcome in lost
        if outcome.port in taken and (outcome.status == 0 or overlaps(outcome, record.bad))
    ]
    wrong = [outcome for outcome in record.good if outcome.status >= 500]
    well = [outcome.ended - outcome.began for outcome in record.good if outcome.status == 200]
    tried = [bad for bad in record.bad if not is_refused(bad)]
    stayed = is_refused(record.bad[-1])
    return {
        "kept by": one.name,
        "wrong answers": f"{streaks(record, lambda o: o.status >= 500):.1f} s ({len(wrong)})",
        "no answer": f"{streaks(record, lambda o: o.status == 0):.1f} s",
        "lost, in flight": str(len(in_flight)),
        "lost, not in flight": str(len(lost) - len(in_flight)),
        "of": str(len(record.good)),
        "slowest good answer": f"{max(well) * 1000:.0f} ms" if well else "-",
        "readiness red after": red_after(record, record.bad[0]),
        "the bad request": ", ".join(map(answer, record.bad)),
        "faults until it stayed up": str(len(tried)) if stayed else f"never ({len(tried)})",
        "decision": one.told(),
    }


def measure(kind: type[contenders.Contender], folder: Path, given: argparse.Namespace) -> dict[str, str]:
    one = kind(folder / kind.__name__, given.build)
    try:
        one.start()
        record = asyncio.run(load.drive(one.port, one.ready, given.rate, given.seconds, given.bad))
        return row(one, record)
    finally:
        if one.process is not None:
            one.stop()


def table(rows: list[dict[str, str]]) -> str:
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([one[name] for name in names] for one in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=contenders.ROOT / "build")
    parser.add_argument("--only", help="contenders whose names hold this text")
    parser.add_argument("--rate", type=float, default=50.0, help="good requests a second (default 50)")
    parser.add_argument("--seconds", type=float, default=80.0, help="for each contender (default 80)")
    parser.add_argument("--bad", type=float, nargs="+", default=[5.0, 30.0, 55.0], help="when")
    parser.add_argument("--keep", type=Path, help="a folder for the logs")
    given = parser.parse_args()
    given.build = given.build.resolve()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="trapline-bench-"))
    chosen = [one for one in contenders.ALL if not given.only or given.only.lower() in one.name.lower()]
    rows = []
    for kind in chosen:
        try:
            rows.append(measure(kind, folder, given))
        except RuntimeError as problem:
            print(f"trapline: bench: {problem}", file=sys.stderr)
            continue
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    if not given.keep:
        shutil.rmtree(folder, ignore_errors=True)
    if rows:
        print(table(rows))
    return 0 if len(rows) == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
