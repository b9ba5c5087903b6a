"""How Inductor writes a check down: as a call of a function of the adapter, past PyTorch's dispatcher.

``torch.ops.trapline.check.default(...)`` in compiled code is a Python function, a parser of arguments by the
schema, and the dispatcher. ``torch.ops.trapline.checked(...)`` is one call into C. What is written with
``cpp_wrapper`` goes through the dispatcher, from C++.
"""

from __future__ import annotations

from typing import Any

import torch

from trapline._compile import op


def install() -> None:
    """Tell Inductor, whose tables must be imported. Where it has changed, it calls the operation."""
    from torch._inductor import lowering

    check = torch.ops.trapline.check.default
    if check in lowering.lowerings:
        return
    lowering.make_fallback(check, warn=False)
    ordinary = lowering.lowerings[check]

    def lowered(*args: Any, **kwargs: Any) -> Any:
        result = ordinary(*args, **kwargs)
        _rename(result)
        return result

    lowering.lowerings[check] = lowered


def _rename(result: Any) -> None:
    """Inductor's nodes for a result: a TensorBox of a StorageBox of an output of the call."""
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    if V.graph.cpp_wrapper or getattr(V.graph, "fx_wrapper", False):
        return  # there the name stands for an operation
    node = result
    while not isinstance(node, ir.FallbackKernel):
        inputs = getattr(node, "inputs", None)
        node = inputs[0] if isinstance(node, ir.MultiOutput) and inputs else getattr(node, "data", None)
        if node is None:
            return
    node.python_kernel_name = f"torch.ops.trapline.{op.DIRECT}"
