"""The house rules of python/trapline: who may import whom, nothing hidden, no circles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[2] / "python"
PACKAGE = PYTHON / "trapline"

_FAULT = {"_fault", "_fault/program", "_fault/data", "_fault/model", "_fault/replay"}
# Which folders, and files that stand alone, a folder may import from. Only the doors may import _boot.
MAY_IMPORT = {
    "_library": set(),
    "_extension": {"_library"},
    "_guard": {"_library", "_extension"},  # whom it hands a violation to is handed in
    "_fault/program": {"_library"},
    "_fault/data": {"_library", "_fault/program"},
    "_fault/model": {"_library", "_fault/program", "_fault/data"},
    "_fault/replay": {"_library", "_fault/program", "_fault/data"},
    "_fault": {"_library", *_FAULT},
    "_exceptions": {"_library", *_FAULT},
    "_compile": {"_library", "_guard"},
    "_skip": {"_library", "_guard", *_FAULT},
    "_check": {"_library"},
    "_cpu": {"_library", "_extension"},
    "_watch": {"_library", *_FAULT},
    "_steps": {"_library"},
    "_supervise": {"_library"},
    "_boot": {
        *("_library", "_guard", *_FAULT, "_exceptions", "_compile", "_skip", "_cpu", "_watch", "_steps"),
        "_supervise",
    },
    # Doors: what a program, a person or Python itself enters by.
    "__init__": {"_library", "_check", "_boot", "_supervise", "_notebook"},
    "_notebook": {"_library", "_boot", "_check", "_supervise", "_fault/program"},
    "asgi": {"_library", "_supervise"},
    "wsgi": {"_library", "_supervise"},
    "batch": {"_library", "_check"},
    "testing": {"_library", "_check"},
    "integrations": {"_library", "__init__"},
    "pytest_plugin": {"_library", "__init__", "_boot", "_exceptions"},
    "startup": {"_boot"},
    "__main__": {"_library"},
    "_build": {"_extension", "_cpu"},
    "_doctor": {"_library", "_extension", "_guard", "_boot"},
    "_build_libtorch": {"_extension"},
}
# sitecustomize runs in every Python below: it asks these two before it imports anything.
READS_OPTIONS = {"_library/options.py", "startup/sitecustomize.py"}


def sources() -> dict[str, str]:
    """Text of each file by its path below python/trapline."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in files}


def module_of(file: str) -> str:
    name = "trapline." + file[: -len(".py")].replace("/", ".")
    return name[: -len(".__init__")] if name.endswith(".__init__") else name


def folder_of(file: str) -> str:
    """The row of MAY_IMPORT that a file belongs to: its folder, or the file itself where it stands alone."""
    return file.rpartition("/")[0] or file[: -len(".py")]


class File:
    """One file and what it imports of trapline, at its top or inside a function."""

    def __init__(self, file: str, text: str, files: dict[str, str]) -> None:
        self.file = file
        self.tree = ast.parse(text)
        self.relative = 0
        self.imports: set[str] = set()  # files
        self.private: list[str] = []  # names with an underscore that are another folder's
        self._bound: dict[str, str] = {}  # what a name in this file stands for
        self._by_module = {module_of(other): other for other in files}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                self._take(node)
            elif isinstance(node, ast.Import):
                self.imports |= {self._by_module[a.name] for a in node.names if a.name in self._by_module}
        self._look_for_private_attributes()
        self.imports.discard(file)

    def _take(self, node: ast.ImportFrom) -> None:
        self.relative += node.level > 0
        module = node.module or ""
        if module.partition(".")[0] != "trapline":
            return
        for alias in node.names:
            whole = self._by_module.get(f"{module}.{alias.name}")
            self.imports.add(whole or self._by_module[module])
            if whole is not None:
                self._bound[alias.asname or alias.name] = whole
            elif self._is_private(alias.name, self._by_module[module]):
                self.private.append(f"{module}.{alias.name}")

    def _look_for_private_attributes(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                other = self._bound.get(node.value.id)
                if other is not None and self._is_private(node.attr, other):
                    self.private.append(f"{node.value.id}.{node.attr}")

    def _is_private(self, name: str, other: str) -> bool:
        return name.startswith("_") and not name.endswith("__") and folder_of(other) != folder_of(self.file)


def read(files: dict[str, str]) -> list[File]:
    return [File(file, text, files) for file, text in files.items()]


@lru_cache(maxsize=1)
def house() -> list[File]:
    return read(sources())


def forbidden_imports(house: list[File]) -> list[str]:
    wrong = []
    for one in house:
        here = folder_of(one.file)
        for other in sorted(one.imports):
            there = folder_of(other)
            if there != here and there not in MAY_IMPORT[here]:
                wrong.append(f"{one.file} imports {other}")
    return wrong


def strings(tree: ast.Module) -> Iterator[str]:
    """Text that a program could look a module up by: all strings but docstrings."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def hidden_imports(house: list[File]) -> list[str]:
    """Modules of trapline named by a string, for ``sys.modules[...]`` or ``import_module()``."""
    hidden = re.compile(r"trapline\.(_|$)")
    return [f"{one.file}: {text}" for one in house for text in strings(one.tree) if hidden.match(text)]


def circles(house: list[File]) -> list[list[str]]:
    """Files that import each other: the strongly connected components of more than one file."""
    imports = {one.file: one.imports for one in house}
    reach = {file: reached_from(file, imports) for file in imports}
    found = {frozenset(b for b in reach[a] if a in reach[b]) for a in imports}
    return sorted(sorted(circle) for circle in found if len(circle) > 1)


def reached_from(file: str, imports: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [file]
    while waiting:
        new = imports[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def option_readers(house: list[File]) -> list[str]:
    """Files that read or set a TRAPLINE_* variable of the environment."""
    option = re.compile(r"""\benviron\b[^()\[]*[(\[]f?['"]TRAPLINE_|\bgetenv\(f?['"]TRAPLINE_""")
    return [one.file for one in house if option.search(ast.unparse(one.tree))]


def test_each_rule_notices_what_it_forbids():
    files = {
        "_library/paths.py": "X = 1",
        "_guard/active.py": "def f():\n    from trapline._fault import violation",
        "_guard/pure.py": "from trapline._library import paths\npaths._root",
        "_fault/violation.py": "import sys\nguard = sys.modules['trapline._guard.active']",
        "_fault/life.py": "from trapline._guard.pure import _scan\nimport_module(f'trapline.{name}')",
        "_skip/policy.py": "def f():\n    from trapline._skip import steps",
        "_skip/steps.py": "from . import ledger\nfrom trapline._skip import policy",
        "_skip/ledger.py": "import os\nfolder = os.environ.get('TRAPLINE_REPORT_DIR')",
    }
    house = read(files)
    assert forbidden_imports(house) == [
        "_guard/active.py imports _fault/violation.py",
        "_fault/life.py imports _guard/pure.py",
    ]
    assert hidden_imports(house) == [
        "_fault/violation.py: trapline._guard.active",
        "_fault/life.py: trapline.",
    ]
    assert {one.file: one.private for one in house if one.private} == {
        "_guard/pure.py": ["paths._root"],
        "_fault/life.py": ["trapline._guard.pure._scan"],
    }
    assert circles(house) == [["_skip/policy.py", "_skip/steps.py"]]
    assert option_readers(house) == ["_skip/ledger.py"]
    assert sum(one.relative for one in house) == 1


def test_the_table_names_every_folder():
    assert {folder_of(file) for file in sources()} == set(MAY_IMPORT)


def test_imports_follow_the_table():
    assert forbidden_imports(house()) == []


def test_no_import_is_hidden_in_a_string():
    assert hidden_imports(house()) == []


def test_private_names_stay_in_their_folder():
    assert {one.file: one.private for one in house() if one.private} == {}


def test_no_circles():
    assert circles(house()) == []


def test_imports_are_absolute():
    assert [one.file for one in house() if one.relative] == []


def test_options_are_read_in_one_place():
    assert set(option_readers(house())) == READS_OPTIONS
