"""Frames inside compiled code: the program's own lines, which the compiler wrote down in its graph.

What really runs there is code that the compiler made. Its frames say nothing to anybody; the graph's node
for the operation holds the stack of the user's program from the compiled function inwards.
"""

from __future__ import annotations

import dis
import gc
import linecache
import os
import re
import sys
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any, Optional

from trapline._fault.program import frames, places, source
from trapline._fault.program.frames import Frame, Pair
from trapline._library import stack_text

Span = tuple[int, int]

_GENERATED = ("<eval_with_key>", "fx_generated_")
_ASSIGNED = re.compile(r"^\s*(\w+)\s*[=:]")


def make_stack(pairs: Sequence[Pair], operation: str = "", graph_stack: Optional[str] = None) -> list[Frame]:
    """frames.make_stack, with the lines that compiled code stands for in place of the code itself.

    `graph_stack`: the stack text of the graph's node, where the caller knows it; else it is looked for.
    """
    stack = frames.make_stack(pairs, operation)
    if graph_stack is None:
        graph_stack = _stack_of_graph_module(pairs)
    return with_graph_stack(stack, graph_stack or "", operation)


def with_graph_stack(stack: list[Frame], graph_stack: str, operation: str = "") -> list[Frame]:
    """The frames of `stack` up to the compiled function, then those of the text `graph_stack`, if any."""
    inner = [_frame(operation, *frame) for frame in stack_text.frames_of(graph_stack)]
    return stack[: _joint(stack, inner[0])] + inner if inner else stack


def _joint(stack: list[Frame], first: Frame) -> int:
    """Where compiled code begins: at the frame of the function that was compiled, else after the deepest
    frame of the user's (a backward pass, whose forward function is no longer running)."""
    name = first["function"].rpartition(".")[2]
    for at, frame in enumerate(stack):
        if frame["file"] == first["file"] and frame["function"].rpartition(".")[2] == name:
            return at
    deepest = [at for at, frame in enumerate(stack) if frame.get("user")]
    return deepest[-1] + 1 if deepest else len(stack)


def _frame(operation: str, file: str, line: int, function: str, carets: str) -> Frame:
    code = _code_of(file, line, function)
    text = source.line_text(file, line)
    frame: Frame = {
        "file": file if file.startswith("<") else os.path.abspath(file),
        "line": line,
        "function": frames.function_name(code) if code is not None else frames.plain_name(function),
        "code": text,
        "user": places.is_user(code) if code is not None else not places.is_library_file(file),
    }
    columns = _columns(text, carets, code, line, operation)
    if columns:
        frame["column"], frame["end_column"] = columns
    return frame


def _columns(text: str, carets: str, code: Optional[CodeType], line: int, operation: str) -> Optional[Span]:
    """Where on the line the operation is. The carets of a stack text are right in where they begin only."""
    marks = re.search(r"[~^]+", carets)
    indent = len(text) - len(text.lstrip())
    if not text or (carets and marks is None):
        return None
    first = indent + marks.start() - 4 if marks is not None else indent  # both lines are indented by four
    calls = [last for start, last in _calls(code, line, text) if start == first]
    named = [last for last in calls if re.search(rf"\b{re.escape(operation)}\s*\(", text[first:last])]
    last = min(named or calls, default=len(text.rstrip()))
    return (first + 1, last + 1) if 0 <= first < last <= len(text) else None


def _calls(code: Optional[CodeType], line: int, text: str) -> list[Span]:
    """First and last character of the calls and subscripts that are wholly on a line."""
    if code is None or not hasattr(code, "co_positions"):
        return []
    found = set()
    for instruction in dis.get_instructions(code):
        position = instruction.positions
        if position is None or (position.lineno, position.end_lineno) != (line, line):
            continue
        if instruction.opname.startswith(("CALL", "BINARY_SUBSCR", "STORE_SUBSCR")):
            columns = (position.col_offset, position.end_col_offset)
            found.add(tuple(frames.characters(text, column) for column in columns))
    return sorted(found)


def _code_of(file: str, line: int, function: str) -> Optional[CodeType]:
    """The code object that a frame of a stack text ran: the shortest one of that name around that line."""
    found: list[tuple[int, CodeType]] = []
    for candidate in gc.get_objects():
        if type(candidate) is not FunctionType:
            continue
        code = candidate.__code__
        if code.co_filename == file and code.co_name == function:
            lines = [number for _, _, number in _lines(code) if number is not None]
            if code.co_firstlineno <= line <= max(lines, default=code.co_firstlineno):
                found.append((max(lines) - code.co_firstlineno, code))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _lines(code: CodeType) -> Any:
    return code.co_lines() if hasattr(code, "co_lines") else [(0, 0, sys.maxsize)]


def _stack_of_graph_module(pairs: Sequence[Pair]) -> Optional[str]:
    """For a graph that runs as Python code (backends eager and aot_eager): the node of the running line."""
    for code, lasti in pairs:
        if code.co_filename.startswith(_GENERATED):
            name = _ASSIGNED.match(linecache.getline(code.co_filename, frames.line_of(code, lasti)))
            module = _graph_module(code)
            for node in module.graph.nodes if module is not None and name else ():
                if node.name == name[1]:
                    return node.meta.get("stack_trace") or None
    return None


def _graph_module(code: CodeType) -> Any:
    import torch

    for candidate in gc.get_objects():
        if issubclass(type(candidate), torch.fx.GraphModule):
            forward = getattr(type(candidate), "forward", None)
            if getattr(forward, "__code__", None) is code:
                return candidate
    return None
