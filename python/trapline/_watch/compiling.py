"""The part that comes in when Dynamo is imported.

The watch has to know when Dynamo begins to compile, and its own code is not to be compiled: its hooks are
traced where a graph holds their caller (they are nothing then), but their frames are skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from trapline._watch import device, late, light, quiet, roots, thorough, watching


def install() -> None:
    """A module of Dynamo's is imported: `callback`, `eval_frame` or `convert_frame`."""
    light.follows_compilation()
    thorough.follows_capture()
    skip = getattr(sys.modules.get("torch._dynamo.eval_frame"), "skip_code", None)
    if skip is not None:
        for module in (device, late, light, quiet, roots, watching):
            for code in _codes_of(vars(module).values(), module.__name__):
                skip(code)


def _codes_of(values: Any, module: str) -> Iterator[CodeType]:
    """Of the functions that are defined in `module`, and of what is defined in them."""
    for value in list(values):
        if isinstance(value, CodeType):
            yield value
            yield from _codes_of(value.co_consts, module)
        elif getattr(value, "__module__", None) != module:
            continue
        elif isinstance(value, FunctionType):
            yield from _codes_of([value.__code__, getattr(value, "__wrapped__", None)], module)
        elif isinstance(value, type):
            yield from _codes_of(vars(value).values(), module)
