"""Requests that caused a fault, by their fingerprints: they are refused the next time.

This process remembers them; under ``trapline supervise`` they are also in ``refused.jsonl`` of its folder,
which is shared with the supervisor and with the processes before and after this one.
"""

from __future__ import annotations

import json
import os
from typing import Any, Optional

from trapline._library import options
from trapline._library.say import debug

MAX_LINE = 4096  # a line is appended in one write; the kernel keeps those apart
_MAX_KEPT = 10_000
_MAX_FILE = 16 << 20
_HEX = frozenset("0123456789abcdef")


class Refusal:
    """Why a request is refused: what it did before."""

    __slots__ = ("code", "request", "summary")

    def __init__(self, code: str, summary: str, request: str) -> None:
        self.code = code
        self.summary = summary
        self.request = request


class _Known:
    """What is refused, and how far the shared file has been read."""

    def __init__(self) -> None:
        self.refusals: dict[str, Refusal] = {}
        self.file: Any = None  # folder, device and number of the file
        self.seen: Any = None  # size and time of its last change, when it was last looked at
        self.read_to = 0

    def add(self, fingerprint: str, refusal: Refusal) -> None:
        self.refusals.pop(fingerprint, None)
        self.refusals[fingerprint] = refusal
        while len(self.refusals) > _MAX_KEPT:
            self.refusals.pop(next(iter(self.refusals)), None)


_known = _Known()


def find(fingerprint: str) -> Optional[Refusal]:
    """Why this request is refused; None: it is not."""
    _look_at_file()
    return _known.refusals.get(fingerprint)


def remember(fingerprint: str, code: str, summary: str, request: str) -> None:
    """This request caused a fault. Told to the others by the file; a disk that is full keeps it here."""
    if fingerprint in _known.refusals:
        return
    _known.add(fingerprint, Refusal(code, summary, request))
    folder = options.supervise_dir()
    if folder is None:
        return
    try:
        _append(_path(folder), _line(fingerprint, code, summary, request))
    except OSError as error:
        debug(f"a refused request is not shared: {error}")


def _path(folder: str) -> str:
    return os.path.join(folder, "refused.jsonl")


def _line(fingerprint: str, code: str, summary: str, request: str) -> bytes:
    record = {"fingerprint": fingerprint, "request": request, "code": code, "summary": summary}
    line = json.dumps(record).encode() + b"\n"
    while len(line) >= MAX_LINE:  # one byte is left for `_append`
        record["summary"] = record["summary"][: len(record["summary"]) * 3 // 4 - 4] + "..."
        line = json.dumps(record).encode() + b"\n"
    return line


def _append(path: str, line: bytes) -> None:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        size = os.fstat(file).st_size
        if size + len(line) > _MAX_FILE:
            return
        # Or another one is being written: an empty line is skipped by whoever reads.
        cut_short = size and os.pread(file, 1, size - 1) != b"\n"  # the last line, by a full disk say
        os.write(file, b"\n" + line if cut_short else line)
    finally:
        os.close(file)


def _look_at_file() -> None:
    """Takes in what others have appended since. One stat() where nothing has changed."""
    folder = options.supervise_dir()
    if folder is None:
        return
    path = _path(folder)
    try:
        status = os.stat(path)
    except OSError:
        return
    seen = (status.st_size, status.st_mtime_ns)
    file = (folder, status.st_dev, status.st_ino)
    if file == _known.file and seen == _known.seen:
        return
    if file != _known.file or status.st_size < _known.read_to:
        _known.file, _known.read_to = file, 0
    try:
        _read_on(path)
        _known.seen = seen
    except OSError as error:
        debug(f"refused requests cannot be read: {error}")


def _read_on(path: str) -> None:
    start = _known.read_to
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        file.seek(start)
        content = file.read(_MAX_FILE + MAX_LINE)
    whole = content.rfind(b"\n") + 1  # the rest is being written
    for line in content[:whole].split(b"\n"):
        _take(line)
    _known.read_to = start + whole  # another thread may have read the same


def _take(line: bytes) -> None:
    try:
        record = json.loads(line)
        fingerprint, code = record["fingerprint"], record["code"]
        summary, request = record["summary"], record["request"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    texts = (fingerprint, code, summary, request)
    if (
        len(line) <= MAX_LINE
        and all(isinstance(text, str) for text in texts)
        and _HEX.issuperset(fingerprint)
    ):
        _known.add(fingerprint, Refusal(code, summary, request))
