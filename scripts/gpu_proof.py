#!/usr/bin/env python3
"""Proves on a GPU what the tests prove without one, and writes the record.

    gpu_proof.py [--build build] [--device cuda] [--out docs/proof] [--limit 460]

It needs an NVIDIA GPU, a torch (2.4 or later) with CUDA, a C++ compiler and nothing from a network; pytest
for the suites. Everything runs in processes of its own under one time limit, side by side where there are
cores for it, and what is timed comes alone at the end; what could not be run is in the record too.
The record is ``<gpu>-<torch>.json``, the table beside it ``.md``. With ``--device cpu`` the same programs
run where there is no GPU; such a run writes no record. Exit code: 0 all seen and right, 1 something is
wrong, 2 it could not start.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("contracts", "host", "compile", "programs", "opinfo", "supervise")  # tests/gpu/proof_*.py
KERNEL_MODES = (
    "check",
    "graph",
    "lost",
)  # of gpu_check_test, each in a process of its own; "cost" comes alone
SUITES = ("examples", "training", "library")  # tests/fakecuda/test_*.py: of CUDA's build, on whatever runs it
ORDER = ("build", "kernels", *PARTS, *SUITES, "overhead")
MACHINE = """
import json, platform, torch
gpu = torch.cuda.is_available()
print(json.dumps({
    "gpu": torch.cuda.get_device_name() if gpu else None,
    "capability": ".".join(map(str, torch.cuda.get_device_capability())) if gpu else None,
    "torch": str(torch.__version__), "cuda": torch.version.cuda, "python": platform.python_version(),
}))
"""


class CannotStart(Exception):
    """One line: what, why, what to do."""


class Proof:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.build = Path(args.build).resolve()
        self.deadline = time.monotonic() + args.limit
        self.cases: list[dict[str, Any]] = []
        self.environment = {
            **os.environ,
            "TRAPLINE_BUILD_DIR": str(self.build),
            "TRAPLINE_GPU": "1",  # tests/fakecuda: this is no stand-in
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")])),
            "PYTHONUNBUFFERED": "1",
        }

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def run(self, command: list[str], limit: float) -> tuple[int, str, str]:
        """Exit code, stdout, stderr; code 124 when the time was up, with what was printed until then."""
        limit = min(limit, self.left())
        if limit <= 0:
            return 124, "", "no time was left"
        try:
            done = subprocess.run(
                command, env=self.environment, cwd=ROOT, capture_output=True, text=True, errors="replace",
                timeout=limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            text = [
                part.decode(errors="replace") if isinstance(part, bytes) else part or ""
                for part in (late.stdout, late.stderr)
            ]
            return 124, text[0], text[1]
        except FileNotFoundError as missing:  # a container may lack nvidia-smi
            return 127, "", str(missing)
        return done.returncode, done.stdout, done.stderr

    def note(self, part: str, case: str, ok: bool | None, detail: Any) -> None:
        self.cases.append({"part": part, "case": case, "ok": ok, "detail": detail})
        word = {True: "ok", False: "WRONG", None: "left out"}[ok]
        print(f"  {word:9s}{part}: {case}" + ("" if ok else f": {detail}"), flush=True)

    # The parts --------------------------------------------------------------------------------

    def machine(self) -> dict[str, Any]:
        code, out, err = self.run([sys.executable, "-c", MACHINE], 120)
        if code != 0:
            raise CannotStart(
                f"torch cannot be used: {last_line(err)}: run this with the Python that has torch"
            )
        facts = json.loads(out)
        if facts["gpu"] is None and self.args.device.startswith("cuda"):
            raise CannotStart("no GPU: torch.cuda.is_available() is False: use a machine with an NVIDIA GPU")
        code, out, _ = (
            self.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], 20)
            if self.args.device.startswith("cuda")
            else (0, "", "")
        )
        facts["driver"] = out.strip().split("\n")[0] or None
        return facts

    def adapter(self) -> None:
        """Builds the guard for this torch, so that no part waits for it."""
        command = [sys.executable, "-m", "trapline._build", "--out", str(self.build / "adapters")]
        start = time.monotonic()
        code, out, err = self.run(command, 240)
        if code != 0:
            raise CannotStart(f"the guard cannot be built for this torch: {last_line(err or out)}")
        self.note("build", "adapter", True, f"{time.monotonic() - start:.0f} s")

    def kernels(self, *modes: str) -> None:
        """The check kernels alone, against the CPU's answer for the same elements, through the driver API."""
        program = self.build / "bin" / "gpu_check_test"
        if not program.is_file():
            self.note("kernels", ", ".join(modes), None, f"{program.name} is not built")
            return
        for mode in modes:
            code, out, err = self.run([str(program), mode], 60)
            ok = None if code == 77 else code == 0
            self.note("kernels", mode, ok, last_line(out or err))

    def part(self, name: str) -> None:
        """One program of tests/gpu; where a case loses the context, the rest goes on in a fresh process."""
        first = 0
        while True:
            script = str(ROOT / "tests" / "gpu" / f"proof_{name}.py")
            command = [sys.executable, script, "--device", self.args.device, "--from", str(first)]
            code, out, err = self.run(command, 200)
            seen = [json.loads(line) for line in out.splitlines() if line.startswith('{"case"')]
            for row in seen:
                self.note(name, row["case"], row["ok"], row["detail"])
            first += len(seen)
            if code != 3:
                break
            self.note(name, "the context was lost", False, "the cases behind it ran in a fresh process")
        if code not in (0, 1):
            self.note(name, f"case {first} and what follows", False, f"exit code {code}: {last_line(err)}")

    def suite(self, name: str) -> None:
        """Tests of whole programs under `trapline run`, which the stand-in for CUDA has seen
        (docs/cuda-build.md)."""
        file = f"tests/fakecuda/test_{name}.py"
        command = [sys.executable, "-m", "pytest", "-v", "--tb=line", "-p", "no:cacheprovider"]
        if name == "training" and importlib.util.find_spec("xdist"):
            command += ["-n", str(max(1, (os.cpu_count() or 1) // 2))]
        code, out, err = self.run([*command, file], 300)
        seen, reasons = {}, {}
        for line in out.splitlines():
            reason = re.match(r"(?:FAILED|ERROR) \S+::(\S+) - (.*)", line)
            if reason:
                reasons[reason.group(1)] = reason.group(2)
            elif result := re.search(r"(PASSED|FAILED|ERROR|SKIPPED)", line) if "::" in line else None:
                known = re.search(r"::(\S+)", line)
                seen[known.group(1)] = result.group(1) if known else ""
        for test, word in seen.items():
            ok = {"PASSED": True, "SKIPPED": None}.get(word, False)
            self.note(name, test, ok, None if ok else reasons.get(test, word.lower()))
        if not seen or code == 124:
            missing = "no pytest" if importlib.util.find_spec("pytest") is None else last_line(err or out)
            self.note(name, file, None if missing == "no pytest" else False, f"exit code {code}: {missing}")

    def side_by_side(self) -> None:
        """What is right or wrong, and not timed."""
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 4)) as pool:
            jobs = [pool.submit(self.suite, name) for name in SUITES if self.args.device.startswith("cuda")]
            jobs += [pool.submit(self.part, name) for name in PARTS]
            jobs += [pool.submit(self.kernels, *KERNEL_MODES)]
            for job in jobs:
                job.result()
        self.cases.sort(key=lambda row: ORDER.index(row["part"]))

    def overhead(self) -> list[dict[str, Any]]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "steps.json"
            command = [
                sys.executable,
                str(ROOT / "bench" / "guard" / "bench_steps.py"),
                "--device",
                self.args.device,
            ]
            command += ["--watch", "--json", str(file), "--seconds", "2" if self.args.small else "8"]
            command += ["--small"] if self.args.small else []
            code, out, err = self.run(command, 200)
            print(out, end="")
            if code != 0:
                self.note("overhead", "bench_steps", False, last_line(err) or f"exit code {code}")
                return []
            return json.loads(file.read_text(encoding="utf-8"))


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def table(record: dict[str, Any]) -> str:
    """The record as a page."""
    machine, cases = record["machine"], record["cases"]
    counts = {
        word: sum(row["ok"] is ok for row in cases)
        for word, ok in (("right", True), ("wrong", False), ("left out", None))
    }
    lines = [
        f"# {machine['gpu'] or 'no GPU'}, torch {machine['torch']}",
        "",
        f"Made by `make gpu-proof` on {record['date']}, commit {record['commit']}: "
        f"driver {machine['driver']}, CUDA {machine['cuda']}, Python {machine['python']}. "
        + ", ".join(f"{count} {word}" for word, count in counts.items())
        + f"; {record['seconds']:.0f} s.",
        "",
        "| training step | ms | with the guard | quartiles | `--on-fault skip` | guard and watch "
        "| `CUDA_LAUNCH_BLOCKING=1` |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in record["overhead"]:
        quartiles = " to ".join(f"{value:.4f}" for value in row["guard_quartiles"])
        peer = "-" if row["launch_blocking"] is None else f"{row['launch_blocking']:.2f}"
        figures = [
            row["model"],
            f"{row['step_ms']:.2f}",
            f"{row['guard']:.4f}",
            quartiles,
            f"{row['skip']:.4f}",
            "-" if row.get("watch") is None else f"{row['watch']:.4f}",
            peer,
        ]
        lines.append(f"| {' | '.join(figures)} |")
    lines += ["", "| part | case | | detail |", "|---|---|---|---|"]
    for row in cases:
        word = {True: "right", False: "**wrong**", None: "left out"}[row["ok"]]
        detail = "" if row["detail"] is None else str(row["detail"]).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {row['part']} | {row['case']} | {word} | {detail} |")
    return "\n".join(lines) + "\n"


def file_stem(machine: dict[str, Any]) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", f"{machine['gpu']}-torch{machine['torch']}".lower()).strip("-")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("TRAPLINE_BUILD_DIR", str(ROOT / "build")))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", default=str(ROOT / "docs" / "proof"), help="folder for the record")
    parser.add_argument("--limit", type=float, default=460, help="seconds for everything")
    parser.add_argument("--small", action="store_true", help="tiny models in the overhead part")
    parser.add_argument("--commit", help="what this is, where git cannot say it")
    args = parser.parse_args()
    start = time.monotonic()
    proof = Proof(args)
    try:
        machine = proof.machine()
        print(f"GPU proof: {machine['gpu'] or args.device}, torch {machine['torch']}")
        proof.adapter()
    except CannotStart as problem:
        print(f"trapline: gpu-proof: {problem}", file=sys.stderr)
        return 2
    _, commit, _ = proof.run(["git", "rev-parse", "--short", "HEAD"], 10)
    proof.side_by_side()
    proof.kernels("cost")
    overhead = proof.overhead()
    seconds = time.monotonic() - start
    record = {
        "date": datetime.date.today().isoformat(),
        "commit": args.commit or commit.strip() or "unknown",
        "seconds": seconds,
        "machine": machine,
        "overhead": overhead,
        "cases": proof.cases,
    }
    wrong = sum(row["ok"] is False for row in proof.cases)
    right = sum(row["ok"] is True for row in proof.cases)
    print(f"{right} right, {wrong} wrong, {len(proof.cases) - right - wrong} left out, {seconds:.0f} s")
    if machine["gpu"] is not None and args.device.startswith("cuda"):
        out = Path(args.out)
        out.mkdir(parents=True, exist_ok=True)
        stem = file_stem(machine)
        (out / f"{stem}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        (out / f"{stem}.md").write_text(table(record), encoding="utf-8")
        print(f"the record: {out / stem}.json and .md")
    else:
        print("no record: nothing of this ran on a GPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
