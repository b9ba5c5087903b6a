"""Writes examples/logs/train.log: what examples/image_classifier_head.py leaves on CUDA without a guard.

    record_log.py [BUILD]      BUILD: a folder with bin/trapline; default: build

There was no GPU: the program runs on the CUDA device that `trapline run --cpu` makes of the CPU, whose
operations run late, with the guard's checks switched off. The assertion line, the exception and the line that
gets the blame are what PyTorch prints for such a device (docs/cpu-in-place-of-cuda.md). Changed in the text
are two things: the frames of the guard, which stands around `backward` although switched off, and of the
start are removed, and paths are those of a cluster.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "examples/image_classifier_head.py"
OFF = f"""
import runpy, torch
from trapline import _boot
_boot.set_enabled(False)
runpy.run_path({EXAMPLE!r}, run_name="__main__")
"""
FRAME = re.compile(r'  File "([^"]+)", line \d+, in .*\n(?:    .*\n)*')
OURS = re.compile(r"/trapline/|^<")  # the guard, and what starts the example in this process
PATHS = (
    (r'"[^"\n]*/site-packages/', '"/opt/venv/lib/python3.11/site-packages/'),
    (r'"[^"\n]*examples/(?=\w+\.py)', '"/job/'),
)


def record(build: Path) -> str:
    done = subprocess.run(
        [str(build / "bin" / "trapline"), "run", "--cpu", "--", sys.executable, "-c", OFF],
        cwd=ROOT,
        env={**os.environ, "TRAPLINE_CPU_LATE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    text = FRAME.sub(lambda frame: "" if OURS.search(frame[1]) else frame[0], done.stdout)
    for pattern, replacement in PATHS:
        text = re.sub(pattern, replacement, text)
    if "device-side assert triggered" not in text or "Assertion" not in text:
        raise SystemExit(f"record_log: no device-side assert was seen:\n{text}")
    return text.rstrip("\n") + "\n"


if __name__ == "__main__":
    chosen = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build")
    (ROOT / "examples" / "logs" / "train.log").write_text(record(chosen), encoding="utf-8")
