"""The report file of one finding, and the facts about this process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from typing import Any, Optional

MAX_FINDINGS = 20
# Where a launcher tells the rank, and how many there are.
_RANK_VARIABLES = {
    "RANK": "WORLD_SIZE",
    "SLURM_PROCID": "SLURM_NTASKS",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK": "PMI_SIZE",
    "PMIX_RANK": "PMIX_SIZE",
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_SIZE",
}

_lock = threading.Lock()
_pid = os.getpid()
_written = 0
_dropped = 0
_complained = False
_last: Optional[tuple[str, dict[str, Any]]] = None


def host_name() -> str:
    """This machine's name, fit for a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in socket.gethostname()) or "localhost"


def process_facts(device: str = "cpu") -> dict[str, Any]:
    """Rank (where a launcher tells it), host, pid and device."""
    facts: dict[str, Any] = {"host": socket.gethostname(), "pid": os.getpid(), "device": device}
    for variable, size in _RANK_VARIABLES.items():
        try:
            facts["rank"] = int(os.environ[variable])
        except (KeyError, ValueError):
            continue
        with contextlib.suppress(KeyError, ValueError):
            facts["world_size"] = int(os.environ[size])
        break
    return facts


def report_of(finding: dict[str, Any], version: str, notes: list[str]) -> dict[str, Any]:
    """A whole report with one finding."""
    return {
        "trapline": {"version": version, "schema": 1},
        "command": "run",
        "verdict": "fault",
        "findings": [finding],
        "notes": notes,
    }


def write_finding(finding: dict[str, Any], version: str, notes: list[str]) -> Optional[str]:
    """Writes the report file into TRAPLINE_REPORT_DIR. None: no folder is named, or it cannot be written."""
    folder = os.environ.get("TRAPLINE_REPORT_DIR")
    if not folder:
        return None
    with _lock:
        return _write(folder, finding, version, notes)


def was_written() -> bool:
    """True when this process has written a finding."""
    return _pid == os.getpid() and _written > 0


def _write(folder: str, finding: dict[str, Any], version: str, notes: list[str]) -> Optional[str]:
    global _pid, _written, _dropped, _last
    if _pid != os.getpid():  # a forked child numbers its own findings
        _pid, _written, _dropped, _last = os.getpid(), 0, 0, None
    if _written >= MAX_FINDINGS:
        _dropped += 1
        if _last is not None:  # the last file carries the count, so that no folder is flooded
            path, report = _last
            note = f"{_dropped} more faults of this process are counted here and not written"
            report = dict(report, notes=[*report["notes"], note])
            _replace(path, report)
        return None
    path = os.path.join(folder, f"finding-{host_name()}-{os.getpid()}-{_written}.json")
    report = report_of(finding, version, notes)
    if not _replace(path, report):
        return None
    _written += 1
    _last = (path, report)
    return path


def _replace(path: str, report: dict[str, Any]) -> bool:
    temporary = f"{path}.tmp{threading.get_ident()}"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(report, file, ensure_ascii=False, allow_nan=False)
        os.replace(temporary, path)
        return True
    except UnicodeEncodeError:  # lone surrogates in a file name or a line
        with open(temporary, "w", encoding="ascii") as file:
            json.dump(report, file, ensure_ascii=True, allow_nan=False)
        os.replace(temporary, path)
        return True
    except OSError as error:
        _complain(os.path.dirname(path), error)
        try:
            os.unlink(temporary)
        except OSError:
            pass
        return False


def _complain(folder: str, error: OSError) -> None:
    global _complained
    if _complained:
        return
    _complained = True
    line = (
        f"trapline: cannot write the report into {folder}: {error.strerror or error}: "
        "give a folder that this process can write to with --report DIR\n"
    )
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass
