"""The one line that counts the seconds on a terminal while a start waits for a build, and is gone afterwards.

A file or a pipe gets nothing: it has the line that said how long it takes.
"""

from __future__ import annotations

import sys
import time

_COLUMNS = 79  # a longer line would wrap, and could not be taken back


class Waiting:
    """Shows ``what`` with the seconds since it was made, against the ``usual`` ones."""

    def __init__(self, what: str, usual: int) -> None:
        self._what, self._usual = what, usual
        self._start = time.monotonic()
        self._shown = 0
        try:
            self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        except (AttributeError, ValueError):  # a notebook's, a closed one
            self._is_terminal = False

    def tick(self) -> None:
        """Show the seconds, when there is one more."""
        seconds = int(time.monotonic() - self._start)
        if self._is_terminal and seconds > self._shown:
            self._shown = seconds
            line = f"trapline: {self._what}: {seconds} s, of usually {self._usual}"
            self._write("\r" + line[:_COLUMNS])

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            self._write("\r" + " " * _COLUMNS + "\r")

    def _write(self, text: str) -> None:
        try:
            print(text, end="", file=sys.stderr, flush=True)
        except (OSError, ValueError):
            self._is_terminal = False
