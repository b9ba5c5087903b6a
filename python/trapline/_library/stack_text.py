"""Reads the stacks that torch keeps as text: what Dynamo writes into the nodes of its graphs."""

from __future__ import annotations

import re

_FRAME = re.compile(r'^\s*File "(.*)", line (\d+), in (.*)$')


def frames_of(stack: str) -> list[tuple[str, int, str, str]]:
    """(file, line, function, the line of carets or "") of a stack as text, outermost first."""
    lines = stack.rstrip("\n").split("\n")
    heads = [i for i, text in enumerate(lines) if _FRAME.match(text)]
    frames = []
    for i, after in zip(heads, [*heads[1:], len(lines)]):
        match = _FRAME.match(lines[i])
        assert match is not None
        carets = [text for text in lines[i + 2 : after] if text.strip() and not text.strip(" ~^")]
        frames.append((match[1], int(match[2]), match[3], carets[0] if carets else ""))
    return frames
