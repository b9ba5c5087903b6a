"""The folders that libraries built on this machine are kept in: which serve, who builds, what failed.

One process builds in a folder at a time. It holds a lock, which the kernel gives back when the process dies
however it dies; and since locks of a network's file system may hold on one node only, or not at all, its
name is in a file that it touches while it works (:mod:`.owner`). Where all that fails two processes build the
same, and the second rename wins.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

from trapline._extension import owner, recipe
from trapline._library import paths

try:
    import fcntl
except ImportError:  # not on this platform: then nobody builds in the background
    fcntl = None  # type: ignore[assignment]

# A compiler that failed is not asked again for every process of a job.
RETRY_S = 3600.0
# How often a builder that works touches its file, and after how long without it another node takes over.
TOUCH_S = 20.0
_SILENT_S = 300.0
# Builds that were killed (a container's end, no memory left) until the next waits as after a failure.
_KILLED_OFTEN = 3
# What another node left behind is taken for garbage after this time.
_LEFT_S = 86400.0


class Claim(NamedTuple):
    """The right to build in a folder: this process's until `release`, or the one's that inherits the lock."""

    lock: int
    owner: str  # the file that names who builds

    def name_this_process(self) -> None:
        """Another process than the one that claimed it goes on with it."""
        with open(self.owner, "w", encoding="utf-8") as file:
            file.write(owner.this_process())

    def touch(self) -> None:
        """Tell other nodes that the build goes on."""
        with contextlib.suppress(OSError):
            os.utime(self.owner)

    def hand_over(self) -> None:
        """Another process has it now."""
        os.close(self.lock)

    def release(self) -> None:
        """Let others build. The lock's file stays, since unlinking it would let two processes in."""
        with contextlib.suppress(OSError):
            os.unlink(self.owner)
        os.close(self.lock)


def folders(create: bool = False) -> Iterator[str]:
    """Where libraries may be, best first. ``create``: make the one in the temporary directory."""
    yield paths.cache_dir()
    temporary = private_temporary_dir(create)
    if temporary is not None:
        yield temporary


def folder_to_build_in(says: str) -> tuple[str | None, str]:
    """The first folder that can be written and that code can be loaded from; else why there is none."""
    noexec = ""
    for folder in folders(create=True):
        if not _is_writable(folder):
            continue
        if not is_noexec(folder):
            return folder, ""
        noexec = noexec or folder
    if noexec:
        why = f"no compiled {says} can be loaded from {noexec}, which is mounted noexec"
    else:
        why = f"no folder for a compiled {says} can be written"
    return None, f"{why}: set XDG_CACHE_HOME to one that can"


def claim(folder: str) -> Claim | None:
    """The right to build in ``folder``, unless another process has it.

    Raises:
        OSError: the folder cannot be written.
    """
    file = os.open(os.path.join(folder, ".build.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    locked = False
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
    except BlockingIOError:
        os.close(file)
        return None
    except OSError:  # a file system without locks
        pass
    claimed = Claim(file, os.path.join(folder, ".build.owner"))
    for _ in range(2):
        try:
            descriptor = os.open(claimed.owner, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if _is_at_work(folder, claimed.owner, locked):
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(claimed.owner)
            continue
        except BaseException:
            os.close(file)
            raise
        os.write(descriptor, owner.this_process().encode())
        os.close(descriptor)
        _remove_leftovers(folder)
        return claimed
    os.close(file)
    return None


def is_claimed(folder: str) -> bool:
    """Some process builds in ``folder`` now."""
    if not os.path.exists(os.path.join(folder, ".build.owner")):
        return False
    claimed = claim(folder)
    if claimed is not None:
        claimed.release()
    return claimed is None


def claim_and_wait(folder: str) -> Claim:
    """The same for a person's command: waits until the other process is done."""
    while True:
        claimed = claim(folder)
        if claimed is not None:
            return claimed
        time.sleep(0.2)


def failed_lately(path: str) -> str | None:
    """Why the library at ``path`` is not built now: its last build failed, or was killed, again and again."""
    log = recipe.log_of(path)
    if _age(log) < RETRY_S:
        return f"could not be compiled lately (see {log})"
    killed = path + ".begun"
    if _age(killed) < RETRY_S and os.path.getsize(killed) >= _KILLED_OFTEN:
        return f"could not be compiled lately: its build was killed {os.path.getsize(killed)} times"
    return None


def note_begun(path: str) -> None:
    """One more build begins; one byte each."""
    old = _age(path + ".begun") >= RETRY_S
    with open(path + ".begun", "w" if old else "a", encoding="ascii") as file:
        file.write("x")


def note_ended(path: str) -> None:
    """The build ended by itself, well or not, or was asked to end."""
    with contextlib.suppress(OSError):
        os.unlink(path + ".begun")


def private_temporary_dir(create: bool) -> str | None:
    """A folder in the temporary directory that is this user's alone: code is going to be loaded from it."""
    if not hasattr(os, "getuid"):
        return None
    path = os.path.join(tempfile.gettempdir(), f"trapline-adapters-{os.getuid()}")
    try:
        if create:
            os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError:
        return None
    is_ours = status.st_uid == os.getuid() and (status.st_mode & 0o170077) == 0o040000
    return path if is_ours else None


def _is_writable(folder: str) -> bool:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def is_noexec(folder: str) -> bool:
    """No code can be loaded from ``folder``, as it is mounted."""
    try:
        return bool(os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 8))
    except OSError:
        return False


def _is_at_work(folder: str, file: str, locked: bool) -> bool:
    """Whether the process that ``file`` names is building; ``locked``: this one holds the lock."""
    try:
        with open(file, encoding="utf-8", errors="replace") as text:
            name = text.read()
        if owner.is_here(name):
            return not locked and owner.lives(name)
        lock = os.path.join(folder, ".build.lock")
        os.utime(lock)  # both times are the server's then
        return os.path.getmtime(lock) - os.path.getmtime(file) < _SILENT_S
    except OSError:
        return False


def _remove_leftovers(folder: str) -> None:
    """What a builder that was killed has left. The caller has the claim, so nobody here is at work."""
    me = owner.this_process()
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if not name.startswith(recipe.PREFIX):
                continue
            path, whose = os.path.join(folder, name), name[len(recipe.PREFIX) :]
            is_dead = owner.is_here(whose) and not whose.startswith(me) and not owner.lives(whose)
            if is_dead or _age(path) > _LEFT_S:
                shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.unlink(path)


def _age(path: str) -> float:
    try:
        return max(0.0, time.time() - os.path.getmtime(path))
    except OSError:
        return float("inf")
