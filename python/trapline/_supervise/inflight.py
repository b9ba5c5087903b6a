"""The requests in flight, in a file that outlives the process, also when it is killed.

``inflight-PID`` in the supervisor's folder is mapped into memory: writing a slot is a copy, and the kernel
keeps it whatever happens to the process. A slot is 256 bytes: ``FINGERPRINT START ID``, filled up with NUL;
its first byte is written last and cleared first, so that a reader sees a whole slot or none.

A request that takes the CUDA context with it is mostly answered before its process is ended: with an error,
as all that come after it are. When the first one ends so, the table is kept as it is: who was in flight then
is suspect, and who came later is not.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from typing import Optional

from trapline._library import forks, options
from trapline._library.say import debug

SLOT = 256
SLOTS = 1024  # requests beyond these are not noted

_NUL = bytes(SLOT)


class Table:
    """The mapped file of this process."""

    def __init__(self, folder: str) -> None:
        """Raises OSError: it cannot be made."""
        path = os.path.join(folder, f"inflight-{os.getpid()}")
        self.map = _mapped(path)
        self.folder = folder
        self.free = list(range(SLOTS - 1, -1, -1))  # pop() and append() need no lock
        self.is_kept = False

    def take(self, fingerprint: str, identifier: str) -> int:
        if self.is_kept:
            return -1
        try:
            slot = self.free.pop()
        except IndexError:
            return -1
        text = f"{fingerprint} {time.time():.6f} {identifier}".encode("utf-8", "replace")[:SLOT]
        text = text.decode("utf-8", "ignore").encode()  # no half of a character
        at = slot * SLOT
        self.map[at + 1 : at + SLOT] = text[1:] + _NUL[len(text) :]
        self.map[at] = text[0]
        return slot

    def give_back(self, slot: int) -> None:
        if self.is_kept:
            return
        self.map[slot * SLOT] = 0
        self.free.append(slot)


def _mapped(path: str) -> mmap.mmap:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(path, flags, 0o600)
    except FileExistsError:  # of a process that is gone and had our number
        os.unlink(path)
        file = os.open(path, flags, 0o600)
    try:
        os.posix_fallocate(file, 0, SLOT * SLOTS)  # on a full disk now, not by a signal at the first write
        return mmap.mmap(file, SLOT * SLOTS)
    except (OSError, ValueError):
        os.unlink(path)
        raise
    finally:
        os.close(file)


_table: Optional[Table] = None
_making = threading.Lock()
_failed_in: Optional[str] = None  # a folder that cannot be written to is asked once


def take(fingerprint: str, identifier: str) -> int:
    """Notes a request; its slot, or -1 where there is no supervisor, no room or no file."""
    folder = options.supervise_dir()
    if folder is None:
        return -1
    table = _table
    if table is None or table.folder != folder:
        if folder == _failed_in:
            return -1
        table = _make(folder)
        if table is None:
            return -1
    return table.take(fingerprint, identifier)


def _make(folder: str) -> Optional[Table]:
    global _table, _failed_in
    with _making:
        if _table is not None and _table.folder == folder:  # another thread was faster
            return _table
        try:
            _table = Table(folder)
        except (OSError, ValueError) as error:
            _failed_in = folder
            debug(f"requests in flight are not noted: {error}")
            return None
        return _table


def give_back(slot: int) -> None:
    """The request of this slot is done."""
    if slot >= 0 and _table is not None:
        _table.give_back(slot)


def keep() -> None:
    """The context is lost: what is in flight now stays noted, and nothing is added."""
    if _table is not None:
        _table.is_kept = True


def is_kept() -> bool:
    """True after `keep`."""
    return _table is not None and _table.is_kept


def _forget() -> None:
    """In a child: it makes a file of its own when it needs one."""
    global _table, _failed_in, _making
    _table, _failed_in, _making = None, None, threading.Lock()


forks.in_child(_forget)
