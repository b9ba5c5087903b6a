"""One table of 5 columns as CSV, Parquet and JSON lines: `trapline check labels` beside polars and DuckDB.

Polars and DuckDB find the smallest and largest label and count the different ones; Trapline judges each
value. All threads of the machine, files in the page cache. The runs of the three alternate, the best counts.
Every run is a process of its own; Trapline's start is timed, the peers' is not (their imports).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
CLASSES = 1000

POLARS = """
import sys, time, polars as pl
start = time.perf_counter()
label = pl.col("label")
what = [label.min().alias("least"), label.max().alias("most"), label.n_unique().alias("count")]
print(pl.{scan}(sys.argv[1]).select(what).collect(engine="streaming").row(0)[2])
print(time.perf_counter() - start)
"""
DUCKDB = """
import sys, time, duckdb
start = time.perf_counter()
duckdb.execute("set enable_progress_bar = false")
query = "select min(label), max(label), count(distinct label) from {scan}(?)"
print(duckdb.execute(query, [sys.argv[1]]).fetchone()[2])
print(time.perf_counter() - start)
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
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, code)
"""


def spent(line: list) -> tuple[float, int, str]:
    """Seconds, peak resident KiB, output."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", MEASURE, *line], stdout=subprocess.PIPE, text=True, check=True
    )
    *text, last = done.stdout.splitlines()
    seconds, kib, code = last.split()
    if code != "0":
        raise SystemExit(f"trapline: bench: {line} ended with {code}: {text}")
    return float(seconds), int(kib), "\n".join(text)


def peer(code: str, scan: str, file: Path) -> tuple[float, int]:
    _, kib, text = spent([sys.executable, "-c", code.format(scan=scan), str(file)])
    count, seconds = text.split()
    if int(count) != CLASSES:
        raise SystemExit(f"trapline: bench: a peer counted {count} labels of {CLASSES}")
    return float(seconds), kib


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
    given = parser.parse_args()
    there = [name for name in ("polars", "duckdb") if importlib.util.find_spec(name)]
    for name in {"polars", "duckdb"} - set(there):
        print(f"trapline: bench: {name} is missing: it is left out")
    if "polars" not in there:
        raise SystemExit("trapline: bench: polars writes the files: install it")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), given.rows)
        for ending, (of_polars, of_duckdb) in FORMATS.items():
            file = Path(folder) / f"t.{ending}"
            ours = [str(BUILD / "bin" / "trapline"), "check", "labels", str(file), "--column", "label"]
            ours += ["--classes", str(CLASSES)]
            seen: dict = {}
            for _ in range(given.times):
                seen.setdefault("trapline", []).append(spent(ours)[:2])
                seen.setdefault("polars", []).append(peer(POLARS, of_polars, file))
                if "duckdb" in there:
                    seen.setdefault("duckdb", []).append(peer(DUCKDB, of_duckdb, file))
            print(
                f"{ending}, {file.stat().st_size / 1e6:.0f} MB, {given.rows} rows, {os.cpu_count()} threads"
            )
            for name, runs in seen.items():
                mib = max(kib for _, kib in runs) / 1024
                print(f"    {name:9} {min(runs)[0]:7.3f} s, {mib:5.0f} MiB resident")


main()
