"""Parts of the model that go with the bad numbers and are not the one that got them: the head that has their
name, the table that has as many rows as they need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.program import owners, scope

Facts = dict[str, Any]
_KEY = re.compile(r"""(?:\["(\w+)"\]|\.(\w+)|^(\w+))$""")
_FEW = 3  # a number so small fits by chance
_WIDTHS = ("out_features", "out_channels", "num_embeddings")


def namesake(layer: Optional[Facts], variable: str, highest: Any) -> Optional[Facts]:
    """Beside the layer, in the same container, the one that is called as the variable's own key:
    `labels["colour"]` was given to `heads.body`, and `heads.colour` has a place for all of them.
    """
    found = _KEY.search(variable)
    name = str((layer or {}).get("name", ""))
    if found is None or type(highest) is not int or "." not in name:
        return None
    key = next(part for part in found.groups() if part)
    around, _, own = name.rpartition(".")
    if key == own:
        return None
    for path, module in _modules():
        if path == f"{around}.{key}":
            places = _width(module)
            if places is not None and places > highest:
                return {"name": path, "places": places, "key": key}
    return None


def other_head(layer: Optional[Facts], highest: Any) -> Optional[Facts]:
    """Of the layers that read the same features as this one, the only other with exactly as many outputs as
    labels up to `highest` need.
    """
    if not layer or layer.get("attribute") != "out_features" or type(highest) is not int:
        return None
    beside = [(path, scope.members(module)) for path, module in _modules()]
    own = next((held for path, held in beside if path == layer.get("name")), {})
    found = {
        id(held): path
        for path, held in beside
        if held is not own
        and held.get("out_features") == highest + 1
        and held.get("in_features") == own.get("in_features") is not None
    }
    return {"name": found.popitem()[1], "places": highest + 1} if len(found) == 1 else None


def other_table(layer: Optional[Facts], highest: Any) -> Optional[Facts]:
    """Of the tables beside this one, in the same container, the only other with exactly as many rows as ids
    up to `highest` need.
    """
    name = str((layer or {}).get("name", ""))
    if not layer or layer.get("attribute") != "num_embeddings" or type(highest) is not int:
        return None
    around = name.rpartition(".")[0]
    rows = {
        path: scope.members(module).get("num_embeddings")
        for path, module in _modules()
        if "." in name and path.rpartition(".")[0] == around and path != name
    }
    found = [path for path, count in rows.items() if count == highest + 1]
    return {"name": found[0], "places": highest + 1} if len(found) == 1 and highest >= _FEW else None


def tied(layer: Optional[Facts], variable: Optional[Facts], highest: Any) -> Optional[Facts]:
    """The rows of the model's only table of ids that is as wide as the layer's input, where these are labels
    of a sequence of ids, of which the table has all and the layer has not: the two belong together.
    """
    if not layer or type(highest) is not int or len((variable or {}).get("index") or ()) < 2:
        return None
    head = next((module for path, module in _modules() if path == layer.get("name")), None)
    width = scope.members(head).get("in_features")
    found = {}
    for path, module in _modules():
        held = scope.members(module)
        rows = held.get("num_embeddings")
        if type(rows) is int and type(width) is int and held.get("embedding_dim") == width:
            found[path] = rows
    if len(found) != 1:
        return None
    path, rows = next(iter(found.items()))
    # One row more is that of a mask, of padding or of a start, which are no labels.
    if not highest < rows or rows <= int(layer.get("value", rows)) + 1:
        return None
    return {"count": rows, "of": f"the number of rows of `{path}`, the table of the same ids,"}


def _modules() -> Iterator[tuple[str, Any]]:
    for variable, root in owners.roots():
        for path, module in root.named_modules():
            yield owners.written(variable, owners.clean_name(path)), module


def _width(module: Any) -> Optional[int]:
    """Its own, or that of the last layer in it."""
    widths = (scope.members(part).get(name) for part in module.modules() for name in _WIDTHS)
    known = [width for width in widths if type(width) is int]
    return known[-1] if known else None
