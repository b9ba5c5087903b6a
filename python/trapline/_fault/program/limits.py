"""Where the program itself cuts sequences to what a setting says: `max_length=config.n_positions + 8`.

A larger table would let that limit grow as well, so the line that sets it is what to look at.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Optional

from trapline._fault.program import calls, holders, texts
from trapline._fault.program.computed import text_of

_LIMIT = re.compile(r"(?:^|_)(?:max|maximum|limit|len|length|block|window|context|chunk|seq)(?:_|$)")
_MAKES = re.compile(r"(?:Config|Settings|Options|Args|Arguments|Embedding|Model)$")


def limit_facts(setting: str) -> Optional[dict[str, Any]]:
    """`text` and `line` of the limit, `more` where the source adds something to what the setting says,
    `follows` where it reads the setting itself rather than a constant of the program."""
    for frame in holders.user_frames():
        tree = calls.tree_of(frame.f_code)
        if tree is None:
            continue
        constants = _constants(tree, setting)
        for name, value in _limits(tree, setting):
            if any(_reads(part, setting, constants) for part in ast.walk(value)):
                facts: dict[str, Any] = {
                    "text": f"{name}={text_of(value)}" if name else text_of(value),
                    "line": value.lineno + calls.first_line(frame.f_code) - 1,
                }
                grows = (ast.Add, ast.Mult, ast.LShift)
                if any(isinstance(getattr(part, "op", None), grows) for part in ast.walk(value)):
                    facts["more"] = True
                if any(_reads(part, setting, set()) for part in ast.walk(value)):
                    facts["follows"] = True
                return facts
    return None


def _constants(tree: Any, setting: str) -> set[str]:
    """Variables that a call is given for the setting: `GPT2Config(n_positions=BLOCK)`."""
    return {
        node.value.id
        for node in texts.nodes_of(tree)
        if isinstance(node, ast.keyword) and node.arg == setting and isinstance(node.value, ast.Name)
    }


def _limits(tree: Any, setting: str) -> list[tuple[str, ast.expr]]:
    """Arguments, variables and ends of slices that limit a length, in the order of the source."""
    found: list[tuple[str, ast.expr]] = []
    for node in texts.nodes_of(tree):
        if isinstance(node, ast.Call) and not _MAKES.search(_callee(node)):
            named = [word for word in node.keywords if word.arg and word.arg != setting]
            found += [(str(word.arg), word.value) for word in named if _LIMIT.search(str(word.arg))]
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            name = getattr(node.targets[0], "attr", getattr(node.targets[0], "id", ""))
            if name != setting and _LIMIT.search(name.lower()) and not isinstance(node.value, ast.Call):
                found.append((name, node.value))
        elif isinstance(node, ast.Slice) and node.upper is not None:
            found.append(("", node.upper))
    return sorted(found, key=lambda one: (one[1].lineno, one[1].col_offset))


def _callee(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def _reads(node: ast.AST, setting: str, constants: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == setting
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value == setting
    return isinstance(node, ast.Name) and (node.id in constants or node.id == setting)
