"""Makes the pictures of docs/pictures out of what stands in the repository and what the build prints.

    python scripts/pictures [--build BUILD]             writes them
    python scripts/pictures --check [--build BUILD]     exit code 1 when one is not what it would write
    python scripts/pictures --record [--build BUILD]    records the terminal and the report anew, first

The log and the report are real: examples/logs/train.log (record_log.py says how it came about), and what
`trapline run` prints in colours, in docs/pictures/report.ansi. The session is docs/pictures/session.cast.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cast
import charts
import svg

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
RUN = "trapline run -- python examples/image_classifier_head.py"
SESSION = ["trapline explain examples/logs/train.log", RUN, "trapline why TL102 | head -n 20"]


def environment(build: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAPLINE_")}
    path = f"{build / 'bin'}:{Path(sys.executable).parent}:{kept.get('PATH', '')}"
    return {
        **kept,
        "PATH": path,
        "TERM": "xterm-256color",
        "TRAPLINE_BUILD_DIR": str(build),
        "PYTHONPATH": "",
    }


def record(build: Path) -> None:
    """Write what a terminal shows: the report in colours, and the session."""
    printed = subprocess.run(
        ["bash", "-c", RUN.replace("run", "run --color always", 1)],
        cwd=ROOT,
        env=environment(build),
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    report = printed[printed.index("\x1b[1;31merror[") :]
    (PICTURES / "report.ansi").write_text(report, encoding="utf-8")
    recording = cast.record(SESSION, ROOT, environment(build))
    for private in (str(ROOT), str(Path.home())):
        recording = recording.replace(private, "/job")
    (PICTURES / "session.cast").write_text(recording, encoding="utf-8")


def before_after(palette: svg.Palette, narrow: bool) -> str:
    """What CUDA leaves, folded as a terminal does, and the report: side by side, or one below the other."""
    log = (ROOT / "examples/logs/train.log").read_text(encoding="utf-8").splitlines()
    report = (PICTURES / "report.ansi").read_text(encoding="utf-8").splitlines()
    right, gap, small = 608.0, 16.0, 9.2  # 80 columns
    left = right if narrow else 390.0
    columns = int((left - 24) / (small * svg.WIDTH))
    folded = []
    for text in log:
        red = "\x1b[31m" if "Assertion" in text or "Error:" in text else ""
        folded += [red + text[at : at + columns] for at in range(0, max(1, len(text)), columns)]
    before, tall = svg.terminal(0.5, 0.5, left, folded, palette, small, "before: what CUDA leaves")
    title = "Before: CUDA's words blame loss.backward(). After: the report names line, value and layer."
    words = "after: trapline run -- python ..."
    if narrow:
        after, more = svg.terminal(0.5, tall + gap, right, report, palette, 12, words)
        return svg.document(right + 1, tall + gap + more + 1, title, before + after)
    after, tall = svg.terminal(left + gap, 0.5, right, report, palette, 12, words, tall)
    return svg.document(left + gap + right + 1, tall + 1, title, before + after)


def pictures(build: Path) -> dict[str, str]:
    """Every picture by its file's name."""
    overhead = (ROOT / "docs/overhead.md").read_text(encoding="utf-8")
    explained = subprocess.run(
        [str(build / "bin/trapline"), "explain", "--format", "json", "examples/logs/job"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    report = json.loads(explained.stdout)
    recording = (PICTURES / "session.cast").read_text(encoding="utf-8")
    made = {}
    for name, palette in svg.PALETTES.items():
        made[f"before-after-{name}.svg"] = before_after(palette, narrow=False)
        made[f"before-after-narrow-{name}.svg"] = before_after(palette, narrow=True)
        made[f"overhead-{name}.svg"] = charts.overhead(overhead, palette)
        made[f"ranks-{name}.svg"] = charts.ranks(report, palette)
        made[f"session-{name}.svg"] = cast.animated(recording, palette, "A log, a run, a page")
    return made


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    PICTURES.mkdir(exist_ok=True)
    if given.record:
        record(given.build.resolve())
    different = []
    for name, text in pictures(given.build.resolve()).items():
        file = PICTURES / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            different.append(name)
            if not given.check:
                file.write_text(text, encoding="utf-8")
    print(f"{'different' if given.check else 'written'}: {', '.join(different) or 'none'}")
    return 1 if given.check and different else 0


if __name__ == "__main__":
    sys.exit(main())
