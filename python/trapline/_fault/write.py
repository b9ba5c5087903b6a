"""The report file of one finding, and the facts about this process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from typing import Any, Optional

from trapline._library import forks, options
from trapline._library.say import say

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
_written = 0
_complained = False


def _start_over() -> None:
    """A forked child numbers its own findings, and must not wait for a lock that its parent held."""
    global _lock, _written
    _lock = threading.Lock()
    _written = 0


forks.in_child(_start_over)


def host_name() -> str:
    """This machine's name, fit for a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in socket.gethostname()) or "localhost"


def process_facts(device: str = "cpu") -> dict[str, Any]:
    """Rank (as torch.distributed or a launcher tells it), host, pid and device."""
    facts: dict[str, Any] = {"host": socket.gethostname(), "pid": os.getpid(), "device": device}
    facts.update(_group_facts())
    if "rank" in facts:
        return facts
    for variable, size in _RANK_VARIABLES.items():
        try:
            facts["rank"] = int(os.environ[variable])
        except (KeyError, ValueError):
            continue
        with contextlib.suppress(KeyError, ValueError):
            facts["world_size"] = int(os.environ[size])
        break
    return facts


def _group_facts() -> dict[str, int]:
    """What the process group says: the processes of mp.spawn have no variable, or one that they share."""
    distributed = sys.modules.get("torch.distributed")  # never imported for this
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            rank, size = distributed.get_rank(), distributed.get_world_size()
            if type(rank) is int and type(size) is int and 0 <= rank < size:
                return {"rank": rank, "world_size": size}
    except Exception:
        pass
    return {}


def report_of(finding: dict[str, Any], version: str, notes: list[str]) -> dict[str, Any]:
    """A whole report with one finding."""
    return {
        "trapline": {"version": version, "schema": 1},
        "command": "run",
        "verdict": "fault",
        "findings": [finding],
        "notes": notes,
    }


def write_finding(
    finding: dict[str, Any], version: str, notes: list[str], last: bool = False
) -> Optional[str]:
    """Writes the report file into TRAPLINE_REPORT_DIR; its path. None: no folder is named, it cannot be
    written, or there are enough of them. `last`: written all the same, since it ended the program."""
    global _written
    folder = options.report_dir()
    if not folder:
        return None
    with _lock:
        if is_full() and not last:
            return None
        name = f"finding-{host_name()}-{os.getpid()}-{_written}.json"
        if not write_json(folder, name, report_of(finding, version, notes)):
            return None
        _written += 1
        return os.path.join(folder, name)


def is_full() -> bool:
    """True when no more than the fault that ends the program will be written."""
    return _written >= MAX_FINDINGS


def was_written() -> bool:
    """True when this process has written a finding."""
    return _written > 0


def write_json(folder: str, name: str, report: dict[str, Any]) -> bool:
    """Writes a file of the report folder, at once or not at all. It says so once when that fails."""
    path = os.path.join(folder, name)
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
    say(
        f"cannot write the report into {folder}: {error.strerror or error}: "
        "give a folder that this process can write to with --report DIR"
    )
