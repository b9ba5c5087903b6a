"""What a report says on the CPU and on CUDA's key, field by field; writes docs/parity.md.

    python tests/cpu_cuda/parity.py [--write] [--cuda PYTHON] [EXAMPLE ...]

On CUDA's key: `--cpu` with late work, which is what a GPU is like (the fault is noticed when the program has
gone on); and, with `--cuda`, PyTorch's CUDA build over the stand-in for the runtime (docs/cuda-build.md),
whose Python is given. The run on the CPU is one of the same program without a device of CUDA.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "e2e"))

import e2e_runner as runner  # noqa: E402
from e2e_cases import CASES  # noqa: E402

SEEDS = (1, 2, 3)
PAGE = ROOT / "docs" / "parity.md"

# Where the two cannot be equal, and why. A star stands for every example.
EXPLAINED = {
    (
        "two_devices",
        "*",
    ): "on the CPU the second device of the example is `meta`, and PyTorch checks it elsewhere",
    ("target_n1", "first help"): "the tensor is `spam.to(device)` there, and `spam` itself on the CPU",
    ("float_labels", "first help"): "the tensor is `grades.to(device)` there, and `grades` itself on the CPU",
    (
        "tokenizer_too_large",
        "first help",
    ): "it names how many ids the guard saw: it does not read good ones on a device",
    ("nan_to_index", "variable"): "the function that held the variable has returned",
    ("sequence_too_long", "variable"): "the function that held the variable has returned",
    (
        "gather_index",
        "variable",
    ): "named on CUDA only: the caller has it, and on the CPU a nearer frame was asked",
    ("gather_index", "first help"): "it names the variable",
}


def fields(finding: dict[str, Any]) -> dict[str, Any]:
    """The fields of the table, each as one value that compares."""
    element = finding.get("element") or {}
    layer = finding.get("layer") or {}
    sample = finding.get("sample") or {}
    origin = finding.get("origin") or {}
    valid = finding.get("valid") or {}
    return {
        "cause": (finding.get("code"), finding.get("cause")),
        "line": (Path(origin.get("file", "")).name, origin.get("line"), origin.get("column")),
        "element": element.get("index"),
        "value": (element.get("value"), element.get("bad"), element.get("total")),
        "range": (valid.get("min"), valid.get("max")),
        "layer": (layer.get("name"), layer.get("type"), layer.get("value")),
        "sample": {key: sample.get(key) for key in ("batch", "row", "dataset_index", "one_of")},
        "variable": element.get("variable"),
        "first help": (finding.get("fix") or [""])[0],
        "contained": finding.get("contained"),
    }


# The ways of a run: None is the CPU, a number late work with that seed, and this PyTorch's CUDA build.
CUDA_BUILD = "the CUDA build"


def run(case: Any, way: int | str | None, folder: Path, cuda: str | None = None) -> dict[str, Any] | None:
    """The first finding of an example."""
    options = [option for option in case.options if option != "--cpu" or way is None]
    options += ["--cpu"] if isinstance(way, int) else []
    environment = runner.environment(**({"TRAPLINE_CPU_LATE": str(way)} if isinstance(way, int) else {}))
    python = [runner.PYTHON]
    if way == CUDA_BUILD:
        standin = str(runner.BUILD / "fakecuda")
        python = [str(ROOT / "tests" / "fakecuda" / "with_cuda.sh"), standin, str(cuda)]
    command = [*python, str(runner.EXAMPLES / case.file)]
    outcome = runner.trapline_json(folder / f"{case.name}-{way}", command, options, environment)
    findings = (outcome.report or {}).get("findings") or []
    return findings[0] if findings else None


def differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    left, right = fields(one), fields(other)
    return {name: (left[name], right[name]) for name in left if left[name] != right[name]}


def explained(example: str, field: str) -> str | None:
    return EXPLAINED.get((example, field)) or EXPLAINED.get((example, "*"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write docs/parity.md")
    parser.add_argument("--cuda", metavar="PYTHON", help="also under PyTorch's CUDA build, of this Python")
    parser.add_argument("examples", nargs="*")
    arguments = parser.parse_args()
    cases = [case for case in CASES if not arguments.examples or case.name in arguments.examples]
    ways = [*SEEDS, *([CUDA_BUILD] if arguments.cuda else [])]
    unexplained, rows = 0, []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=2) as pool:
        runs = {
            (case.name, way): pool.submit(run, case, way, Path(folder), arguments.cuda)
            for case in cases
            for way in (None, *ways)
        }
        for case in cases:
            here = runs[case.name, None].result()
            found: dict[str, list[Any]] = {}
            for way in ways:
                there = runs[case.name, way].result()
                if here is None or there is None:
                    found.setdefault("cause", []).append(
                        (way, here and here["code"], there and there["code"])
                    )
                    continue
                for name, pair in differences(here, there).items():
                    found.setdefault(name, []).append((way, *pair))
            for name, seen in found.items():
                if explained(case.name, name) is None:
                    unexplained += 1
                    for one in seen:
                        print(case.name, name, *map(json.dumps, one), sep="\n    ", file=sys.stderr)
            rows.append((case.name, found))
            print(case.name, "equal" if not found else "differs: " + ", ".join(found), flush=True)
    if arguments.write:
        PAGE.write_text(page(rows), encoding="utf-8")
    return 1 if unexplained else 0


def page(rows: list[tuple[str, dict[str, list[Any]]]]) -> str:
    names = list(fields({}))
    lines = [BEGINNING, "| example | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    notes: list[str] = []
    for example, found in rows:
        cells = []
        for name in names:
            why = explained(example, name)
            if name not in found:
                cells.append("=")
            elif why is None:
                cells.append("**differs**")
            else:
                if why not in notes:
                    notes.append(why)
                cells.append(f"({notes.index(why) + 1})")
        lines.append(f"| {example} | " + " | ".join(cells) + " |")
    lines += ["", *(f"({number}) {why}." for number, why in enumerate(notes, 1))]
    return "\n".join(lines) + "\n"


BEGINNING = """# The same report on the CPU and on CUDA

Written by `python tests/cpu_cuda/parity.py --write --cuda .venv-cuda/bin/python`: every example on the CPU,
three times with `TRAPLINE_CPU_LATE` on PyTorch's CUDA key, where the fault is noticed when the program has
gone on ([cpu-in-place-of-cuda.md](cpu-in-place-of-cuda.md)), and once under PyTorch's CUDA build over the
stand-in for the CUDA runtime ([cuda-build.md](cuda-build.md)). `=` is equal in all four, in every part of the
field. For every row of the contracts table `tests/device/test_contracts.py` compares the same in one process,
on both devices.
"""


if __name__ == "__main__":
    sys.exit(main())
