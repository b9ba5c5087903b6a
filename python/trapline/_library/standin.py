"""A function of PyTorch's that ours stands in for: what else knows it has to know ours."""

from __future__ import annotations

import sys
from typing import Any, Callable


def known_to_script(wrapper: Any, original: Any) -> Callable[[], None]:
    """TorchScript finds its operations by the identity of the function; it would compile ours. Undone by what
    is returned.
    """
    builtins = sys.modules.get("torch.jit._builtins")
    operations = getattr(builtins, "_builtin_ops", [])
    name = next((name for function, name in operations if function is original), None)
    if name is None:
        return lambda: None
    row = (wrapper, name)
    operations.append(row)
    table = getattr(builtins, "_builtin_table", None)  # made of the operations when it is first asked for
    if table is not None:
        table[id(wrapper)] = name

    def undo() -> None:
        if row in operations:
            operations.remove(row)
        (getattr(builtins, "_builtin_table", None) or {}).pop(id(wrapper), None)

    return undo
