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
        NotWritten: the folder is missing, closed or full.
        ImportError: there is no library.
    """
    lib = paths.library()
    return _written(
        lib, lib.trapline_write_finding, calls.as_json(finding), calls.as_json(notes), always, folder=folder
    )


def write_file(folder: str, kind: str, content: dict[str, Any]) -> None:
    """Writes what this process says besides its findings: ``KIND-HOST-PID.json``. Raises as above."""
    lib = paths.library()
    _written(lib, lib.trapline_write_file, kind.encode(), calls.as_json(content), folder=folder)


def findings_written(folder: str) -> int:
    """How many findings this process has written into the folder."""
    return paths.library().trapline_findings_written(_bytes(folder))


def _bytes(folder: str) -> bytes:
    return folder.encode("utf-8", "surrogateescape")  # as the environment has it


def _written(lib: Any, write: Any, *arguments: Any, folder: str) -> Optional[str]:
    pointer = ctypes.c_void_p()
    verdict = write(_bytes(folder), *arguments, ctypes.byref(pointer))
    text = calls.taken(lib, pointer.value)
    if verdict == capi.FILE_FAILED:
        raise NotWritten(text or "memory is exhausted: free some")
    return text
