# ruff: noqa: B023, PLW0108 - every function is run before its loop goes on
"""Speed of `trapline check` and trapline.check_*, each against named peers on the same data in the same run.

One thread each (but where it says otherwise), files in the page cache, the best of several runs. The command
is timed with its start. `--gib` sets the size (1 in the goals).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
os.environ["TRAPLINE_BUILD_DIR"] = str(BUILD)
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[name] = "1"
sys.path.insert(0, str(ROOT / "python"))

import numpy as np  # noqa: E402
import trapline  # noqa: E402


def best(run: Callable[[], Any], times: int = 5) -> float:
    run()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def line_of(*words: object, threads: int = 1) -> list[str]:
    return [str(BUILD / "bin" / "trapline"), "check", *map(str, words), "--threads", str(threads)]


def command(*words: object, threads: int = 1) -> Callable[[], None]:
    line = line_of(*words, threads=threads)

    def run() -> None:
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"trapline: bench: {' '.join(line)}: {done.stdout}{done.stderr}")

    return run


def show(what: str, ours: float, size: int, peers: dict[str, float]) -> None:
    print(f"{what}: {ours * 1e3:.0f} ms, {size / ours / 1e9:.1f} GB/s")
    for name, seconds in peers.items():
        print(
            f"    {seconds / ours:6.2f} times as fast as {name} "
            f"({seconds * 1e3:.0f} ms, {size / seconds / 1e9:.1f} GB/s)"
        )


def at_cache_speed(data: Any) -> None:
    """The same on 512 KiB, again and again: what the code can do where memory is no bound."""
    part, times = data[: (512 << 10) // 8], 2000

    def again(run: Callable[[], Any]) -> float:
        return best(lambda: [run() for _ in range(times)], 3)

    peers = {
        "a read-sum, x.sum()": again(part.sum),
        "NumPy ((a >= 0) & (a < n)).all()": again(lambda: ((part >= 0) & (part < 1000)).all()),
    }
    if torch := optional("torch"):
        tensor = torch.from_numpy(part)
        peers["torch aminmax"] = again(lambda: torch.aminmax(tensor))
    ours = again(lambda: trapline.check_labels(part, 1000))
    show("labels int64 in the cache (512 KiB, 2000 times)", ours, part.nbytes * times, peers)


class Peak:
    """Runs a command and samples its memory: in all, and without the pages of mapped files."""

    def __init__(self, *words: object, threads: int = 1) -> None:
        self.all = self.own = 0
        with subprocess.Popen(line_of(*words, threads=threads), stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                try:
                    text = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
                except OSError:
                    break
                at = dict(part.split(":", 1) for part in text.splitlines() if part.startswith("Rss"))
                size = {name: int(value.split()[0]) for name, value in at.items()}
                self.own = max(self.own, size.get("RssAnon", 0))
                self.all = max(self.all, sum(size.values()))
                time.sleep(0.001)

    def __str__(self) -> str:
        return f"{self.own / 1024:.0f} MiB of its own, {self.all / 1024:.0f} MiB with mapped files"


def scaling(*words: object) -> None:
    one = best(command(*words), 3)
    for threads in range(2, (os.cpu_count() or 1) + 1):
        print(
            f"    {one / best(command(*words, threads=threads), 3):6.2f} times as fast with {threads} threads"
        )
    print(f"    peak memory: {Peak(*words)}")


def labels(folder: Path, size: int) -> None:
    data = np.arange(size // 8, dtype=np.int64) % 1000
    file = folder / "labels.npy"
    np.save(file, data)
    peers = {
        "a read-sum, x.sum()": best(data.sum),
        "NumPy ((a >= 0) & (a < n)).all()": best(lambda: ((data >= 0) & (data < 1000)).all()),
    }
    if torch := optional("torch"):
        tensor = torch.from_numpy(data)
        peers["torch aminmax"] = best(lambda: torch.aminmax(tensor))
    show("labels int64, trapline.check_labels", best(lambda: trapline.check_labels(data, 1000)), size, peers)
    at_cache_speed(data)
    mapped = {"np.load(mmap_mode='r').sum()": best(lambda: np.load(file, mmap_mode="r").sum())}
    mapped["np.load, ((a >= 0) & (a < n)).all()"] = best(
        lambda: ((a := np.load(file, mmap_mode="r")) >= 0).all() and (a < 1000).all()
    )
    mapped["np.fromfile(...).sum()"] = best(lambda: np.fromfile(file, np.int64).sum(), 2)
    show("labels .npy, trapline check labels", best(command("labels", file, "--classes", 1000)), size, mapped)
    scaling("labels", file, "--classes", 1000)
    file.unlink()


def finite(folder: Path, size: int) -> None:
    torch, safetensors = optional("torch"), optional("safetensors.torch")
    if not torch or not safetensors:
        return
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        tensor = torch.ones(size // dtype.itemsize, dtype=dtype)
        peers = {
            "torch isfinite(x).all()": best(lambda: torch.isfinite(tensor).all(), 2),
            "torch aminmax": best(lambda: torch.aminmax(tensor), 2),
        }
        if dtype != torch.bfloat16:
            array = tensor.numpy()
            peers["NumPy isfinite(x).all()"] = best(lambda: np.isfinite(array).all(), 2)
        name = str(dtype).rpartition(".")[2]
        show(
            f"finite {name}, trapline.check_finite", best(lambda: trapline.check_finite(tensor)), size, peers
        )
        file = folder / "w.safetensors"
        safetensors.save_file({"w": tensor}, str(file))
        show(f"finite {name} .safetensors, trapline check finite", best(command("finite", file)), size, {
            "load_file, isfinite(x).all()": best(
                lambda: torch.isfinite(safetensors.load_file(str(file))["w"]).all(), 2
            ),
        })  # fmt: skip
        scaling("finite", file)
        file.unlink()


def parquet(folder: Path, size: int) -> None:
    pa, duckdb = optional("pyarrow"), optional("duckdb")
    if not pa:
        return
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    file = folder / "labels.parquet"
    pq.write_table(pa.table({"label": np.random.default_rng(0).integers(0, 1000, size // 8)}), file)
    try:
        ours = best(command("labels", file, "--classes", 1000), 3)
    except SystemExit as error:
        print(f"labels .parquet: left out: {str(error)[:200]}")
        return
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    peers = {
        "pyarrow read_table + compute.min_max": best(
            lambda: pc.min_max(pq.read_table(file, use_threads=False)["label"]), 3
        )
    }
    if duckdb:
        base = duckdb.connect(config={"threads": 1})
        # Of the plain column, and of `label + 0`, DuckDB knows the answer from the file's statistics, without
        # reading a value; of this it does not.
        query = f"select min(xor(label, 1)), max(xor(label, 1)) from '{file}'"
        peers["DuckDB, min and max of the values, one thread"] = best(
            lambda: base.execute(query).fetchall(), 3
        )
    show("labels .parquet, trapline check labels", ours, size, peers)
    scaling("labels", file, "--classes", 1000)
    file.unlink()


def optional(name: str) -> Any:
    import importlib

    try:
        module = importlib.import_module(name)
    except ImportError:
        print(f"trapline: bench: {name} is missing: it is left out")
        return None
    if name == "torch":
        module.set_num_threads(1)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.0)
    size = int(parser.parse_args().gib * (1 << 30)) // 64 * 64
    with tempfile.TemporaryDirectory() as folder:
        labels(Path(folder), size)
        finite(Path(folder), size // 4)
        parquet(Path(folder), size // 4)


main()
