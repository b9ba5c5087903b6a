"""A buffer that was not finite when it was made, and that nothing has written since: a table of numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, Optional

from trapline._fault.data.values import first_place
from trapline._fault.program import arisen, calls, written
from trapline._watch.rows import ids_in, sample_of

_MAX_TEXT = 80


def of_buffer(module: Any, name: str, arguments: Any) -> dict[str, Any]:
    """Facts: `since_made`; `at`, the first place, of `bad` of `total`; `origin` and `text` of the line that
    made it; and the sample that reads one of its bad rows. {}: something has written it."""
    buffer = dict(module.named_buffers()).get(name)
    if buffer is None or buffer.is_inference() or buffer._version or not buffer.dim():
        return {}
    bad = (~buffer.detach().isfinite()).cpu()
    if not bool(bad.any()):
        return {}
    path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(path) if path else module
    return {
        "since_made": True,
        "at": first_place(bad),
        "bad": int(bad.sum()),
        "total": bad.numel(),
        **_registered(owner, leaf),
        **_reader(bad.reshape(len(bad), -1).any(1), arguments),
    }


def _registered(owner: Any, leaf: str) -> dict[str, Any]:
    """Of the only line of the module's class that makes it."""
    found = {
        (kind, code, node.lineno + calls.first_line(code) - 1, ast.unparse(value))  # type: ignore[attr-defined]
        for kind, code, tree in written.methods_of(owner)
        for node in ast.walk(tree)
        if (value := _given(node, leaf)) is not None
    }
    # What a class derives from may make another one, which it does without.
    first = next((kind for kind in type(owner).__mro__ if any(one[0] is kind for one in found)), None)
    mine = [one for one in found if one[0] is first]
    if len(mine) != 1:
        return {}
    _, code, line, text = mine[0]
    return {**arisen.origin_of(code, line), **({"text": text} if len(text) <= _MAX_TEXT else {})}


def _given(node: Any, leaf: str) -> Optional[ast.expr]:
    """`self.register_buffer("props", value)`."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if not is_call or node.func.attr != "register_buffer" or len(node.args) < 2:
        return None
    named = node.args[0]
    return node.args[1] if isinstance(named, ast.Constant) and named.value == leaf else None


def _reader(rows: Any, arguments: Iterable[Any]) -> dict[str, Any]:
    """The sample whose ids name a bad row, where only one of what the module was given may be ids of it."""
    if bool(rows.all()):
        return {}
    hits = [rows[given.detach().cpu().long()] for given in ids_in(arguments, len(rows))]
    hits = [one for one in hits if bool(one.any())]
    return sample_of(hits[0], learned=False) if len(hits) == 1 else {}
