"""Turns (code object, instruction offset) pairs into the frames of finding.schema.json."""

from __future__ import annotations

import dis
import io
import os
import re
import sys
import tokenize
from collections.abc import Sequence
from types import CodeType
from typing import Any, Optional

from trapline._fault.program import places, scope, source

Frame = dict[str, Any]
Pair = tuple[CodeType, int]
# What Dynamo calls the rest of a function after a part that it could not compile.
_AROUND = 3  # lines above and below the origin
_MAX_COMPARED = 1 << 22  # elements
_MAX_CONTEXT = 400  # characters of each
_RESUMED = re.compile(r"\btorch_dynamo_resume_in_(.+)_at_\d+$")


def _line_of(code: CodeType, lasti: int) -> int:
    line = code.co_firstlineno
    for start, number in dis.findlinestarts(code):
        if start > lasti:
            break
        if number is not None:
            line = number
    return line


def position(code: CodeType, lasti: int) -> tuple[int, Optional[int], Optional[int], Optional[int]]:
    """(line, end line, column, end column); columns are 0-based UTF-8 offsets, None when not known."""
    if lasti >= 0 and hasattr(code, "co_positions"):
        for offset, found in enumerate(code.co_positions()):
            if offset == lasti // 2:
                if found[0] is not None:
                    return found[0], found[1], found[2], found[3]
                break
    return _line_of(code, lasti), None, None, None


def characters(text: str, offset: int) -> int:
    """A UTF-8 offset as a number of characters."""
    return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace"))


def _end_of_code(text: str) -> int:
    """Characters of a line before a trailing comment and trailing blanks."""
    end = len(text.rstrip())
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.strip() + "\n").readline):
            if token.type == tokenize.COMMENT:
                indent = len(text) - len(text.lstrip())
                end = len(text[: indent + token.start[1]].rstrip())
    except (tokenize.TokenError, SyntaxError):
        pass  # the line opens a bracket: the tokens before the end of the line were seen
    return end


def _columns_by_name(text: str, operation: str) -> Optional[tuple[int, int]]:
    """Where a line names the operation: all that is known before Python 3.11."""
    if not operation.isidentifier():
        return None
    found = re.search(r"(?:\w+\.)*\b" + re.escape(operation) + r"\b", text)
    return (found.start() + 1, found.end() + 1) if found else None


def function_name(code: CodeType) -> str:
    """The function's qualified name, without the functions around it."""
    return plain_name(getattr(code, "co_qualname", code.co_name))


def plain_name(name: str) -> str:
    """A function's name as it is written in the program."""
    return _RESUMED.sub(r"\1", name.rpartition("<locals>.")[2])


def line_of(code: CodeType, lasti: int) -> int:
    """The line that a frame is at."""
    return position(code, lasti)[0]


def make_frame(pair: Pair, operation: str = "") -> Frame:
    """One frame; `operation` is the public name to look for where the columns are not recorded."""
    code, lasti = pair
    line, end_line, column, end_column = position(code, lasti)
    text = source.line_text(code.co_filename, line)
    if not text and code.co_filename == "<string>" and places.is_user(code):
        program = (source.command_text() or "").split("\n")
        text = program[line - 1] if 0 < line <= len(program) else ""
    filename = code.co_filename
    if not filename.startswith("<"):
        filename = os.path.abspath(filename)
    frame: Frame = {
        "file": filename,
        "line": max(line, 0),
        "function": function_name(code),
        "code": text,
        "user": places.is_user(code),
    }
    cell = source.cell_of(code.co_filename)
    if cell is not None:
        frame["cell"] = cell
    if not text:
        return frame
    if column is not None and end_column is not None:
        first = characters(text, column) + 1
        last = characters(text, end_column) + 1 if end_line in (None, line) else _end_of_code(text) + 1
        if first < last <= len(text) + 1:
            frame["column"], frame["end_column"] = first, last
    else:
        columns = _columns_by_name(text, operation)
        if columns:
            frame["column"], frame["end_column"] = columns
    return frame


def make_stack(pairs: Sequence[Pair], operation: str = "") -> list[Frame]:
    """Frames outermost first, without Trapline's own and without the import machinery."""
    kept = [pair for pair in pairs if not _is_hidden(pair[0])]
    return [make_frame(pair, operation) for pair in reversed(kept)]


def _is_hidden(code: CodeType) -> bool:
    return places.is_own(code.co_filename) or code.co_filename.startswith("<frozen ")


def origin_of(stack: Sequence[Frame]) -> Optional[Frame]:
    """The deepest user frame; without one, the deepest frame outside torch; without that, the deepest."""
    for frame in reversed(stack):
        if frame.get("user"):
            return frame
    torch = sys.modules.get("torch")
    inside = os.path.dirname(torch.__file__) + os.sep if torch is not None and torch.__file__ else "\0"
    for frame in reversed(stack):
        if not frame["file"].startswith(inside):
            return frame
    return stack[-1] if stack else None


def with_context(frame: Optional[Frame]) -> Optional[Frame]:
    """The frame with the lines around it, as far as its own line is known."""
    if frame is None or not frame.get("code"):
        return frame
    line = frame["line"]
    before = [source.line_text(frame["file"], number) for number in range(max(line - _AROUND, 1), line)]
    after = [source.line_text(frame["file"], number) for number in range(line + 1, line + 1 + _AROUND)]
    while after and not after[-1].strip():
        after.pop()
    while before and not before[0].strip():
        before.pop(0)
    return dict(frame, before=[_cut(text) for text in before], after=[_cut(text) for text in after])


def _cut(text: str) -> str:
    return text[:_MAX_CONTEXT]


def shape_given(tensor: Any) -> Optional[list[int]]:
    """Of what cross_entropy() and its kin were given, where they have changed its shape: nll_loss_nd() of
    PyTorch puts a row of one into targets of two dimensions."""
    for frame in scope.live_frames():
        target = frame.f_locals.get("target")
        if frame.f_globals.get("__name__") != "torch.nn.functional" or type(target) is not type(tensor):
            continue
        if target.numel() != tensor.numel() or target.shape == tensor.shape or target.device != tensor.device:
            continue
        if target.numel() <= _MAX_COMPARED and bool((target.reshape(-1) == tensor.reshape(-1)).all()):
            return [int(size) for size in target.shape]
    return None


def live_pairs() -> list[Pair]:
    """The pairs of the calling thread, for a violation that came without any."""
    pairs: list[Pair] = []
    frame = sys._getframe(1)
    while frame is not None:
        pairs.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return pairs
