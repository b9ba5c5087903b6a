"""The report file of one finding, and the facts about this process."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from typing import Any, Optional

from trapline._library import capi, forks, options, report
from trapline._library.say import say

# Where a launcher tells the rank, and how many there are.
_RANK_VARIABLES = {
    "RANK": "WORLD_SIZE",
    "SLURM_PROCID": "SLURM_NTASKS",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK": "PMI_SIZE",
    "PMIX_RANK": "PMIX_SIZE",
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_SIZE",
}

_complained = False
_lost = 0  # findings that could not be written
_told: set[str] = set()  # their lines on stderr
_MAX_LINES = 20


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


def write_finding(finding: dict[str, Any], notes: list[str], last: bool = False) -> Optional[str]:
    """Writes the report file into TRAPLINE_REPORT_DIR; its path. None: no folder is named, it cannot be
    written, or there are enough of them. `last`: written all the same, since it ended the program. What
    cannot be written is said on stderr."""
    folder = options.report_dir()
    if not folder:
        return None
    try:
        return report.write_finding(folder, finding, notes, last)
    except report.NotWritten as problem:
        _complain(problem)
        _lose(finding)
        return None


def write_file(kind: str, content: dict[str, Any]) -> None:
    """Writes ``KIND-HOST-PID.TAG.json`` into TRAPLINE_REPORT_DIR, where there is one."""
    folder = options.report_dir()
    if folder:
        try:
            report.write_file(folder, kind, content)
        except report.NotWritten as problem:
            _complain(problem)


def is_full() -> bool:
    """True when no more than the fault that ends the program will be written."""
    return written() >= capi.MAX_FINDINGS


def was_written() -> bool:
    """True when this process has written a finding."""
    return written() > 0


def written() -> int:
    """How many findings of this process are in the folder."""
    folder = options.report_dir()
    return report.findings_written(folder) if folder else 0


def lost() -> int:
    """How many findings of this process are in no file."""
    return _lost


def _lose(finding: dict[str, Any]) -> None:
    global _lost
    _lost += 1
    text = line(finding)
    if text not in _told and len(_told) < _MAX_LINES:  # what ends the program is tried again
        _told.add(text)
        say(text)


def _start_over() -> None:
    global _lost
    _lost = 0
    _told.clear()


forks.in_child(_start_over)


def line(finding: dict[str, Any]) -> str:
    """The finding in one line: code, rank, sentence, place."""
    rank = (finding.get("process") or {}).get("rank")
    origin = finding.get("origin") or {}
    text = f"[{finding.get('code')}] " + ("" if rank is None else f"rank {rank}: ")
    text += str(finding.get("summary", "")).split("\n")[0][:1000]
    if origin.get("file"):
        place = f"({os.path.basename(origin['file'])}:{origin.get('line', 0)})"
        text += "" if place in text else f" {place}"
    return "".join(c if c.isprintable() else "?" for c in text)


def _complain(problem: report.NotWritten) -> None:
    """Says once that the folder cannot be written."""
    global _complained
    if not _complained:
        _complained = True
        say(str(problem))
