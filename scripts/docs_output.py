"""The commands that the documentation shows, run again.

    docs_output.py [--write] [--build BUILD] [PAGE...]    all pages when none is named; --write mends them

A fenced block that begins with ```console is a session: `$ COMMAND`, then what it prints (both streams, as on
a terminal). A line that begins with `...` stands for any number of lines. A block whose first line is
`# not run: REASON` is shown only. All blocks of a page share one folder, which holds a copy of examples/, so
that what one command writes the next one reads.
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = "# not run: "
TIME_LIMIT = 240  # seconds; a hang is a failure
PAGES = (
    "README.md",
    "HACKING.md",
    "CONTRIBUTING.md",
    "docs",
    "examples/README.md",
    "examples/server/README.md",
)


@dataclass
class Step:
    """One command of a session, and the lines that the page shows below it."""

    command: str
    shown: list[str] = field(default_factory=list)


@dataclass
class Block:
    """A session of a page: where its text lies in it, its steps, and why it is not run (None: it is)."""

    start: int
    end: int
    steps: list[Step]
    not_run: Optional[str] = None


def pages() -> list[Path]:
    """All pages that users read."""
    found: list[Path] = []
    for name in PAGES:
        path = ROOT / name
        found += sorted(path.rglob("*.md")) if path.is_dir() else [path]
    return found


def blocks(text: str) -> list[Block]:
    """The sessions of a page. ValueError where one does not keep to the form."""
    found = []
    for match in FENCE.finditer(text):
        lines = match[1].splitlines()
        reason = None
        if lines and lines[0].startswith(NOT_RUN):
            reason = lines.pop(0)[len(NOT_RUN) :]
        if not lines or not lines[0].startswith("$ "):
            raise ValueError(f"a console block must begin with `$ COMMAND`: {match[1][:60]!r}")
        steps: list[Step] = []
        for line in lines:
            if line.startswith("$ "):
                steps.append(Step(line[2:]))
            elif steps[-1].command.endswith("\\") and not steps[-1].shown:
                steps[-1].command = f"{steps[-1].command[:-1]}{line.strip()}"
            else:
                steps[-1].shown.append(line)
        found.append(Block(match.start(1), match.end(1), steps, reason))
    return found


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the page shows what was printed, its `...` lines standing for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.startswith("...") else re.escape(line.rstrip()) + "\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in printed)) is not None


def mended(shown: list[str], printed: list[str]) -> list[str]:
    """What the page should show. Its `...` lines stay: each hides what comes before the next kind of line."""
    result: list[str] = []
    rest = list(printed)
    for number, line in enumerate(shown):
        if not line.startswith("..."):
            continue
        before = [text for text in shown[:number] if not text.startswith("...")]
        if not result and before:
            result += rest[: len(before)]
            rest = rest[len(before) :]
        result.append(line)
        following = next((text for text in shown[number + 1 :] if text.strip()), None)
        kind = re.match(r"[^\[:]*[\[:]?", following)[0] if following is not None else None
        while rest and (kind is None or not rest[0].startswith(kind)):
            rest.pop(0)
        if number + 1 < len(shown) and not shown[number + 1].strip():
            result.append("")
    return [text.rstrip() for text in result + rest]


class Session:
    """A folder with a copy of examples/, in pages /job, and the commands of a page run in it one by one."""

    def __init__(self, build: Path, folder: Path) -> None:
        self._folder = folder / "work"
        self._status = 0
        shutil.copytree(
            ROOT / "examples",
            self._folder / "examples",
            ignore=shutil.ignore_patterns("__pycache__", "build"),
        )
        home = folder / "home"
        home.mkdir()
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TRAPLINE_", "PYTHON", "XDG_", "CLICOLOR", "FORCE_", "NO_COLOR"))
        }
        self._environment = {
            **kept,
            "PATH": f"{build / 'bin'}:{Path(sys.executable).parent}:{kept.get('PATH', '')}",
            "HOME": str(home),
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRAPLINE_BUILD_DIR": str(build),
        }

    def run(self, command: str) -> list[str]:
        """The lines that the command prints. `$?` in it is the exit code of the one before."""
        done = subprocess.run(
            ["bash", "-c", f"(exit {self._status}); {command}"],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIME_LIMIT,
            check=False,
        )
        self._status = done.returncode
        text = done.stdout.decode("utf-8", "replace")
        return text.replace(str(self._folder), "/job").splitlines()


def compare(page: Path, build: Path, write: bool = False) -> list[str]:
    """Run a page's sessions: the difference for each command that prints something else. write: mend it."""
    text = page.read_text(encoding="utf-8")
    wrong: list[str] = []
    replaced: list[tuple[Block, str]] = []
    with tempfile.TemporaryDirectory(prefix="trapline-docs-") as folder:
        session = Session(build, Path(folder))
        for block in blocks(text):
            if block.not_run is not None:
                continue
            lines: list[str] = []
            for step in block.steps:
                printed = session.run(step.command)
                lines.append(f"$ {step.command}")
                if matches(step.shown, printed):
                    lines += step.shown
                    continue
                lines += mended(step.shown, printed)
                wrong.append(
                    "\n".join(
                        [
                            f"{page.relative_to(ROOT)}: $ {step.command}",
                            *difflib.unified_diff(step.shown, printed, "shown", "printed", lineterm=""),
                        ]
                    )
                )
            replaced.append((block, "".join(line + "\n" for line in lines)))
    if write and wrong:
        for block, new in reversed(replaced):
            text = text[: block.start] + new + text[block.end :]
        page.write_text(text, encoding="utf-8")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    given = parser.parse_args()
    run = not_run = different = 0
    for page in [path.resolve() for path in given.pages] or pages():
        for block in blocks(page.read_text(encoding="utf-8")):
            run += block.not_run is None
            not_run += block.not_run is not None
        for difference in compare(page, given.build.resolve(), given.write):
            different += 1
            print(difference)
    print(f"{run} sessions run, {different} commands differ, {not_run} sessions shown only")
    return 1 if different and not given.write else 0


if __name__ == "__main__":
    sys.exit(main())
