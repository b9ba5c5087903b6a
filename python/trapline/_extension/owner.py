"""Names a process so that another one, maybe on another machine, can tell whether it still lives."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform


def this_process() -> str:
    """``NODE-PID-START``: the machine since its last start, the process, and when that began."""
    return f"{_node()}-{os.getpid()}-{_start(os.getpid())}"


def is_here(name: str) -> bool:
    """The named process is, or was, one of this machine."""
    return name.partition("-")[0] == _node()


def lives(name: str) -> bool:
    """The named process, one of this machine, is there; also where that cannot be told."""
    parts = name.split("-")
    if len(parts) < 3 or not (parts[1].isdigit() and parts[2].isdigit()):
        return False
    pid, start = int(parts[1]), int(parts[2])
    if not os.path.isdir(f"/proc/{os.getpid()}"):  # a bare chroot
        return _answers(pid)
    return _start(pid) == start and start != 0


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _start(pid: int) -> int:
    """When the process began, in clock ticks since the machine's start; 0 where that cannot be told."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return 0 if fields[0] in "ZX" else int(fields[19])
    except (OSError, IndexError, ValueError):
        return 0


def _node() -> str:
    """The host's name and its start: a container of another name is another node, as its pids are others."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            parts.append(file.read())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
