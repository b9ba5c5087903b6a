"""Which line of the program a check stands for, also when the compiled code comes out of a cache on disk.

The code in the cache does not hold lines: they move whenever somebody edits the file, and then nothing would
ever be found in the cache. It holds the number of a node of Dynamo's graph, and Dynamo makes that graph anew
in every process: here are the nodes' stacks of this process, by a hash of the graph.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from trapline._library import stack_text

_MAX_PROGRAMS = 4096
_stacks: dict[str, list[tuple[str, ...]]] = {}


class Program:
    """One graph of Dynamo's: its hash, and the first node that has a given stack."""

    def __init__(self, key: str, stacks: tuple[str, ...]) -> None:
        self.key = key
        self._nodes: dict[str, int] = {}
        for node, stack in enumerate(stacks):
            self._nodes.setdefault(stack, node)

    def node(self, stack: str | None) -> int:
        """The number of the node with this stack; -1 when there is none."""
        return self._nodes.get(stack or "", -1) if stack else -1


def register(module: Any) -> Program:
    """Keep the stacks of a graph of Dynamo's, and tell what its checks are to be named after."""
    digest = hashlib.sha256()
    stacks: list[str] = []
    same: dict[str, str] = {}
    for node in _nodes(module):
        # Not the names: the cache does not tell graphs apart that differ in them only.
        digest.update(f"{node.op} {_target(node)} {len(node.args)}\n".encode("utf-8", "replace"))
        stack = node.meta.get("stack_trace") or ""
        stacks.append(same.setdefault(stack, stack))
    program = Program(digest.hexdigest()[:32], tuple(stacks))
    if program.key not in _stacks and len(_stacks) >= _MAX_PROGRAMS:
        return program
    known = _stacks.setdefault(program.key, [])
    if tuple(stacks) not in known:
        known.append(tuple(stacks))
    return program


def stacks_of(key: str, node: int) -> list[str]:
    """The stacks that a check may stand for: several where two places of a program give equal graphs."""
    found = [stacks[node] for stacks in _stacks.get(key, ()) if 0 <= node < len(stacks) and stacks[node]]
    return list(dict.fromkeys(found))


def choose(key: str, node: int, running: Iterable[Any] | None = None) -> str:
    """The stack that a check stands for; "" if none is known.

    Of several it is the one of a function that is running: ``running`` are code objects, innermost first, and
    where it is None those of this thread now.
    """
    candidates = stacks_of(key, node)
    if len(candidates) < 2:
        return candidates[0] if candidates else ""
    for code in _running() if running is None else running:
        within = []
        for candidate in candidates:
            file, line, function, _ = stack_text.frames_of(candidate)[0]
            if (file, function) == (code.co_filename, code.co_name) and line >= code.co_firstlineno:
                within.append((line - code.co_firstlineno, candidate))
        if within:
            return min(within)[1]
    return candidates[0]


def _running() -> Iterator[Any]:
    frame = sys._getframe(1)
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


def _nodes(module: Any) -> Iterator[Any]:
    import torch

    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            yield from part.graph.nodes


def _target(node: Any) -> str:
    if node.op == "placeholder":
        return ""
    return str(node.target) if isinstance(node.target, str) else getattr(node.target, "__name__", "?")
