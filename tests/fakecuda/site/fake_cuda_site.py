"""Inductor without Triton: where the stand-in for CUDA is preloaded, the graphs that Inductor lowers run as
they are, operation by operation, and in CUDA graphs where the program wants these. Kernels of Triton end in
machine code for a GPU, which nothing here can run. A ``.pth`` file of the stand-in's own venv imports this.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_TARGET = "torch._inductor.compile_fx"


def _in_cuda_graphs(run: Any, graph: Any, options: dict[str, Any]) -> Any:
    import torch
    from torch._inductor.compile_fx import cudagraphify
    from torch._inductor.cudagraph_utils import get_placeholder_info

    outputs = next(iter(reversed(graph.graph.nodes))).args[0]
    return cudagraphify(
        run,
        static_input_idxs=options.get("static_input_idxs") or (),
        device_index=torch.cuda.current_device(),
        stack_traces=[None] * len(outputs),
        is_backward=options.get("is_backward", False),
        is_inference=options.get("is_inference", False),
        placeholders=get_placeholder_info(graph.graph),
    )


def _as_it_is(graph: Any, example_inputs: Sequence[Any], *_: Any, **options: Any) -> Any:
    def run(arguments: list[Any]) -> Any:
        given = list(arguments)
        arguments.clear()
        return graph(*given)

    wanted = options.get("cudagraphs")
    if wanted is not None and getattr(wanted, "value", wanted):
        run = _in_cuda_graphs(run, graph, options)
    run._boxed_call = True  # type: ignore[attr-defined]
    return run


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        if name != _TARGET:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            module._compile_fx_inner = _as_it_is  # type: ignore[attr-defined]

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _Finder())
