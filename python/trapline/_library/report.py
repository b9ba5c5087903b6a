"""Files of the report folder, which ``trapline run`` collects: whole or not at all, by libtrapline."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from trapline._library import calls, capi, paths


class NotWritten(Exception):
    """Why a file could not be written, and what to do, in one line."""


def write_finding(folder: str, finding: dict[str, Any], notes: list[str], always: bool) -> Optional[str]:
    """The path of the report with this finding; None: this process has written enough of them.

    Raises:
        NotWritten: the folder is missing, closed or full, or there is no library.
    """
    return _written(
        folder, "trapline_write_finding", calls.as_json(finding), calls.as_json(notes), int(always)
    )


def write_file(folder: str, kind: str, content: dict[str, Any]) -> None:
    """Writes what this process says besides its findings: ``KIND-HOST-PID.TAG.json``. Raises as above."""
    _written(folder, "trapline_write_file", kind.encode(), calls.as_json(content))


def findings_written(folder: str) -> int:
    """How many findings this process has written into the folder."""
    try:
        return paths.library().trapline_findings_written(_bytes(folder))
    except ImportError:
        return 0


def _bytes(folder: str) -> bytes:
    return folder.encode("utf-8", "surrogateescape")  # as the environment has it


def _written(folder: str, function: str, *arguments: Any) -> Optional[str]:
    try:
        lib = paths.library()
    except ImportError as problem:
        raise NotWritten(str(problem).removeprefix("trapline: ")) from None
    pointer = ctypes.c_void_p()
    verdict = getattr(lib, function)(_bytes(folder), *arguments, ctypes.byref(pointer))
    text = calls.taken(lib, pointer.value)
    if verdict == capi.FILE_FAILED:
        raise NotWritten(text or "out of memory: free some memory and run again")
    return text
