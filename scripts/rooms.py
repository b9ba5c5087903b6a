"""Draws docs/rooms.md from the code: which room of src includes which, which folder of Python imports which.

    python scripts/rooms.py           prints the page
    python scripts/rooms.py --write   writes it

An arrow that follows from others is left out. tests/house compares the page with the code.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "rooms.md"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"/]+)/', re.MULTILINE)
Arrows = dict[str, set[str]]

BEGINNING = """# The rooms, as they are

Drawn from the code by `python scripts/rooms.py --write`; a test says when it is due. An arrow goes from who
uses to what is used; one that follows from others is left out. What they are for:
[HACKING.md](../HACKING.md).
"""


def rooms() -> Arrows:
    """Rooms of src, and the public headers, by what their files include."""
    names = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    arrows: Arrows = {name: set() for name in (*names, "include")}
    for name in names:
        for path in (ROOT / "src" / name).rglob("*"):
            if path.suffix in (".cpp", ".hpp", ".h", ".c", ".cu"):
                for other in INCLUDE.findall(path.read_text(encoding="utf-8")):
                    arrows[name] |= {"include" if other == "trapline" else other} & (names | {"include"}) - {
                        name
                    }
    return arrows


def folders() -> Arrows:
    """Folders of python/trapline, and files that stand alone, by what they import anywhere."""
    package = ROOT / "python" / "trapline"
    files = {path.relative_to(package) for path in package.rglob("*.py")}

    def place(parts: tuple[str, ...]) -> str | None:
        """The folder of a dotted name below trapline, or the file at the top."""
        for end in range(len(parts), 0, -1):
            if Path(*parts[:end], "__init__.py") in files:
                return "/".join(parts[:end])
            if Path(*parts[:end]).with_suffix(".py") in files:
                return "/".join(parts[: end - 1]) or parts[0]
        return None

    arrows: Arrows = {}
    for file in files:
        own = str(file.parent) if file.parent != Path() else file.stem
        used = arrows.setdefault(own, set())
        for node in ast.walk(ast.parse((package / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "trapline":
                base = tuple((node.module or "").split(".")[1:])
                used |= {place((*base, alias.name)) or "__init__" for alias in node.names}
            elif isinstance(node, ast.Import):
                inside = [
                    alias.name.split(".")[1:] for alias in node.names if alias.name.startswith("trapline.")
                ]
                used |= {place(tuple(parts)) or "__init__" for parts in inside}
        used.discard(own)
    return arrows


def behind(arrows: Arrows, name: str) -> set[str]:
    """All that is reached from one."""
    found: set[str] = set()
    open_ = [name]
    while open_:
        fresh = arrows.get(open_.pop(), set()) - found
        found |= fresh
        open_ += fresh
    return found


def reduced(arrows: Arrows) -> Arrows:
    """Without the arrows that follow from others."""
    return {
        name: others - {far for near in others for far in behind(arrows, near)}
        for name, others in arrows.items()
    }


def drawn(arrows: Arrows, prefix: str) -> str:
    names = sorted(arrows)
    number = {name: f"{prefix}{at}" for at, name in enumerate(names)}
    lines = ["```mermaid", "graph TD"]
    lines += [f'  {number[name]}["{name}"]' for name in names]
    for name, others in sorted(reduced(arrows).items()):
        lines += [f"  {number[name]} --> {number[other]}" for other in sorted(others)]
    return "\n".join([*lines, "```"])


def page() -> str:
    parts = [BEGINNING, "## `src`, and `include/trapline`\n", drawn(rooms(), "r"), ""]
    parts += ["## `python/trapline`\n", drawn(folders(), "p"), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
