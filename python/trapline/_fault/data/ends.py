"""A range that holds its end, as those of `random.randint(a, b)` and NumPy's `random_integers` do: what is
drawn up to the number of places is one more than there are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any, Optional

from trapline._fault.program import computed, names, texts

_MAX_LINES = 4


def end_facts(scan: dict[str, Any], made: Optional[list[dict[str, Any]]]) -> Optional[dict[str, Any]]:
    """`text`, `file` and `lines` of the program's draws up to the size of a layer that is `made` by; None
    where another number than that size is bad, or draws are of several texts."""
    hi = scan.get("hi")
    if type(hi) is not int or not scan.get("value") == scan.get("max") == hi or scan.get("lo") != 0:
        return None
    size = {
        text.strip() for one in made or () for text in re.split(r"(?<![=!<>])=(?!=)", one.get("text", ""))
    }
    leaves = {text.rpartition(".")[2] for text in size}
    found: dict[tuple[str, str], list[int]] = {}
    for file, tree in texts.user_trees():
        for node in texts.nodes_of(tree):
            end = _end(node, tree)
            if end is None:
                continue
            text = ast.unparse(end)
            if text in size or text.rpartition(".")[2] in leaves or _value(end) == hi:
                found.setdefault((file, computed.text_of(node)), []).append(node.lineno)
    if len(found) != 1:
        return None
    (file, text), lines = found.popitem()
    return {"text": text, "file": file, "lines": sorted(lines)[:_MAX_LINES]}


def _end(node: Any, tree: Any) -> Optional[ast.expr]:
    """The last number that the call may give."""
    if not isinstance(node, ast.Call):
        return None
    if node.args and not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0):
        return None  # what counts from 1 has its own place to be mended
    name, given = texts.called(node), {one.arg: one.value for one in node.keywords}
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name == "randint" and _is_pythons(owner, tree):
        return node.args[1] if len(node.args) == 2 else given.get("b")
    if name == "random_integers":
        return node.args[1] if len(node.args) > 1 else given.get("high")
    whole = given.get("endpoint")
    if name == "integers" and isinstance(whole, ast.Constant) and whole.value is True:
        return node.args[1] if len(node.args) > 1 else given.get("high")
    return None


def _is_pythons(owner: Any, tree: Any) -> bool:
    """`random.randint`, `randint` of that module, or a `random.Random()`'s; NumPy's and PyTorch's leave the
    end out."""
    every = texts.nodes_of(tree)
    if owner is None:
        return any(
            isinstance(node, ast.ImportFrom)
            and node.module == "random"
            and any((one.asname or one.name) == "randint" for one in node.names)
            for node in every
        )
    if isinstance(owner, ast.Name) and owner.id == "random":
        return any(
            isinstance(node, ast.Import)
            and any(one.name == "random" and not one.asname for one in node.names)
            for node in every
        )
    leaf = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return any(_made_random(node, leaf) for node in every)


def _made_random(node: Any, leaf: str) -> bool:
    """`rng = random.Random(0)`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    targets: Iterable[Any] = node.targets
    is_it = any(leaf in (getattr(one, "id", ""), getattr(one, "attr", "")) for one in targets)
    return is_it and texts.called(node.value) == "Random"


def _value(node: ast.expr) -> Optional[int]:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    wanted = ast.unparse(node)
    held = {id(value): value for name, value in names.variables() if name == wanted and type(value) is int}
    return next(iter(held.values())) if len(held) == 1 else None
