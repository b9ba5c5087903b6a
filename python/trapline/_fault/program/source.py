"""Source text of a line, given only when the file still is what the process ran."""

from __future__ import annotations

import io
import linecache
import os
import re
import sys
import time
import tokenize
from collections.abc import Sequence
from functools import lru_cache
from typing import Optional

# A file written just before the process started can carry an mtime a clock tick later than the start that
# the kernel reports, because both are rounded.
_CLOCK_SLACK_S = 0.05
_OF_KERNEL = re.compile(r"\bipykernel_\d+")  # the folder of a kernel's cells


def _process_start() -> float:
    """Wall-clock time at which this process started; the import of this module where /proc is missing."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as stat:
            ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
        with open("/proc/uptime", encoding="ascii") as uptime:
            up = float(uptime.read().split()[0])
        return time.time() - (up - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError, AttributeError):
        return time.time()


# A forked child inherits this value: its parent read the files, so the parent's start is the one that counts.
PROCESS_START = _process_start()


def is_notebook(filename: str) -> bool:
    """True for a notebook cell: its text lives in linecache, not in a file that could be compared."""
    typed = filename.startswith(("<ipython-input", "<python-input"))
    typed = typed or _OF_KERNEL.search(filename) is not None
    return typed or cell_of(filename) is not None


def cell_of(filename: str) -> Optional[int]:
    """The 4 of IPython's ``In[4]`` for a cell's file name, which is different in every session."""
    module = sys.modules.get("IPython.core.interactiveshell")
    shell = getattr(getattr(module, "InteractiveShell", None), "_instance", None)
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", None)
    number = numbers.get(filename) if type(numbers) is dict else None
    if number is None and filename.startswith("<ipython-input-"):
        digits = filename[len("<ipython-input-") :].partition("-")[0]
        number = int(digits) if digits.isdigit() else None
    return number if type(number) is int and number > 0 else None


@lru_cache(maxsize=64)
def _lines_of_file(filename: str) -> tuple[str, ...]:
    with open(filename, "rb") as file:
        data = file.read(32 << 20)
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    text = data.decode(encoding, errors="replace")
    return tuple(text.splitlines() if "\f" not in text and "\v" not in text else text.split("\n"))


def _cached_lines(filename: str) -> list[str]:
    entry = linecache.cache.get(filename)
    if entry is None:
        return []
    if len(entry) == 1:  # a lazy entry: linecache reads it through the module's loader
        return linecache.getlines(filename)
    return entry[2]


def line_text(filename: str, line: int) -> str:
    """The text of one line without its line end, or "" when it is gone or may not be what ran."""
    if line < 1:
        return ""
    lines = _lines(filename)
    if line > len(lines):
        return ""
    return lines[line - 1].rstrip("\r\n")


def text(filename: str) -> str:
    """The whole text of a file, or "" when it is gone or may not be what ran."""
    return "\n".join(line.rstrip("\r\n") for line in _lines(filename))


def _lines(filename: str) -> Sequence[str]:
    try:
        if is_notebook(filename) or filename.startswith("<"):
            return _cached_lines(filename)
        if os.stat(filename).st_mtime > PROCESS_START + _CLOCK_SLACK_S:
            return ()  # edited while the program ran: the line number holds, the text may not
        return _lines_of_file(filename)
    except OSError:
        return _cached_lines(filename)  # a module inside a zip file, or one that a loader made
    except (SyntaxError, LookupError, ValueError):
        return ()


def command_text() -> Optional[str]:
    """The program of `python -c`, when that is what runs."""
    arguments = getattr(sys, "orig_argv", [])
    for position, argument in enumerate(arguments[:-1]):
        if argument == "-c":
            return arguments[position + 1]
    return None
