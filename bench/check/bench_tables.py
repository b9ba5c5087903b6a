"""One table of 5 columns as CSV, Parquet and JSON lines: `trapline check labels` beside polars and DuckDB.

Polars and DuckDB find the smallest and largest label and count the different ones; Trapline judges each
value. All threads of the machine, files in the page cache. The runs of the three alternate; of each round the
peer's time is divided by Trapline's, and the median of these ratios counts: other programs slow down both.
Every run is a process of its own; Trapline's start is timed, the peers' is not (their imports).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
CLASSES = 1000

POLARS = """
import sys, time, polars as pl
start, cpu = time.perf_counter(), time.process_time()
label = pl.col("label")
what = [label.min().alias("least"), label.max().alias("most"), label.n_unique().alias("count")]
print(pl.{scan}(sys.argv[1]).select(what).collect(engine="streaming").row(0)[2])
print(time.perf_counter() - start, time.process_time() - cpu)
"""
DUCKDB = """
import sys, time, duckdb
start, cpu = time.perf_counter(), time.process_time()
duckdb.execute("set enable_progress_bar = false")
query = "select min(label), max(label), count(distinct label) from {scan}(?)"
print(duckdb.execute(query, [sys.argv[1]]).fetchone()[2])
print(time.perf_counter() - start, time.process_time() - cpu)
"""
FORMATS = {
    "csv": ("scan_csv", "read_csv_auto"),
    "parquet": ("scan_parquet", "read_parquet"),
    "jsonl": ("scan_ndjson", "read_json_auto"),
}


# A process's peak counts what its parent held when it was forked: the parent is a small one.
MEASURE = """
import resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[1:]).returncode
wall = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(wall, used.ru_utime + used.ru_stime, used.ru_maxrss, code)
"""


def spent(line: list) -> tuple[float, float, int, str]:
    """Seconds, of them computing on all cores, peak resident KiB, output."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, *line], stdout=subprocess.PIPE, text=True, check=True
    )
    *text, last = done.stdout.splitlines()
    seconds, cpu, kib, code = last.split()
    if code != "0":
        raise SystemExit(f"trapline: bench: {line} ended with {code}: {text}")
    return float(seconds), float(cpu), int(kib), "\n".join(text)


def peer(code: str, scan: str, file: Path) -> tuple[float, float, int]:
    _, _, kib, text = spent([sys.executable, "-c", code.format(scan=scan), str(file)])
    count, seconds, cpu = text.split()
    if int(count) != CLASSES:
        raise SystemExit(f"trapline: bench: a peer counted {count} labels of {CLASSES}")
    return float(seconds), float(cpu), kib


def write(folder: Path, rows: int) -> None:
    import numpy as np
    import polars as pl

    random = np.random.default_rng(0)
    columns = {
        "id": np.arange(rows),
        "width": random.random(rows).round(4),
        "height": random.random(rows).round(4),
        "label": random.integers(0, CLASSES, rows),
        "group": random.integers(0, 50, rows),
    }
    table = pl.DataFrame(columns)
    table.write_csv(folder / "t.csv")
    table.write_parquet(folder / "t.parquet")
    table.write_ndjson(folder / "t.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", choices=FORMATS, help="one of the formats")
    parser.add_argument("--folder", type=Path, help="where the files are kept for the next time")
    given = parser.parse_args()
    there = [name for name in ("polars", "duckdb") if importlib.util.find_spec(name)]
    for name in {"polars", "duckdb"} - set(there):
        print(f"trapline: bench: {name} is missing: it is left out")
    if "polars" not in there:
        raise SystemExit("trapline: bench: polars writes the files: install it")
    with tempfile.TemporaryDirectory() as passing:
        folder = (given.folder or Path(passing)) / str(given.rows)
        if not folder.exists():
            folder.mkdir(parents=True)
            write(folder, given.rows)
        for ending, (of_polars, of_duckdb) in FORMATS.items():
            if given.only not in (None, ending):
                continue
            file = folder / f"t.{ending}"
            ours = [str(BUILD / "bin" / "trapline"), "check", "labels", str(file), "--column", "label"]
            ours += ["--classes", str(CLASSES)]
            seen: dict = {}
            for _ in range(given.times):
                seen.setdefault("trapline", []).append(spent(ours)[:3])
                seen.setdefault("polars", []).append(peer(POLARS, of_polars, file))
                if "duckdb" in there:
                    seen.setdefault("duckdb", []).append(peer(DUCKDB, of_duckdb, file))
            print(
                f"{ending}, {file.stat().st_size / 1e6:.0f} MB, {given.rows} rows, {os.cpu_count()} threads"
            )
            for name, runs in seen.items():
                mib = max(kib for _, _, kib in runs) / 1024
                wall, cpu = (statistics.median(run[i] for run in runs) for i in (0, 1))
                ratios = [
                    statistics.median(theirs[i] / own[i] for theirs, own in zip(runs, seen["trapline"]))
                    for i in (0, 1)
                ]
                print(
                    f"    {name:9} {wall:7.3f} s, {cpu:7.3f} s computing, {mib:5.0f} MiB resident; "
                    f"of Trapline's {ratios[0]:.2f} times, {ratios[1]:.2f} times",
                    flush=True,
                )


main()
