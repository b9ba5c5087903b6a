"""A build that nobody waits for: a process of its own, in a session of its own, at the lowest priority.

It is started as a file by a Python without site-packages and without one variable of Trapline or of Python,
so it is never guarded; it holds no descriptor of the program but the lock of the cache's folder, and it is no
child of the program, which is never told of its end. It ends by itself: at the end of the build, or of its
time. It dies before the program does when memory runs out.

``trapline run`` neither waits for it nor ends it. ``trapline supervise`` ends it with all else that a program
leaves behind when it ends; the next start begins again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING

if __package__ in (None, ""):  # started as a file
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from trapline._extension import cache, recipe

if TYPE_CHECKING:
    from trapline._extension.recipe import Recipe

# Of one core for all commands of a build together; a build takes half a minute.
_CPU_S = 900
_WALL_S = 3600
# The compiler needs 1 GB: with less than this free it could take the program's.
_FREE_BYTES = 3 << 30
_MOST_BYTES = 8 << 30


def start(what: Recipe, claimed: cache.Claim, niceness: int) -> str | None:
    """Start the build; the claim goes to it. None, or why it could not be started."""
    folder = os.path.dirname(what.path)
    python = _python()
    if python is None:
        claimed.release()
        return "no Python to run the build with"
    try:
        descriptor, order = tempfile.mkstemp(prefix=recipe.PREFIX + "order-", dir=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump([what._asdict(), claimed._asdict(), niceness], file)
        os.set_inheritable(claimed.lock, False)
        with open(os.path.join(folder, "background.log"), "ab") as log:
            child = subprocess.Popen(
                [python, "-I", "-S", "-B", os.path.abspath(__file__), order],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_environment(),
                close_fds=True,
                pass_fds=[claimed.lock],
                start_new_session=True,
            )
        child.wait(timeout=60)  # it forks at once and ends: milliseconds
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        claimed.release()
        return f"the build could not be started: {error}"
    claimed.hand_over()
    return None


def has_memory() -> bool:
    """There is memory for a compiler beside the program."""
    return _free_bytes() >= _FREE_BYTES


def _free_bytes() -> int:
    free = 1 << 62
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _text("/proc/meminfo").splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    for most, used, cached in (
        ("memory.max", "memory.current", "memory.stat"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
    ):
        with contextlib.suppress(OSError, ValueError):  # "max": no limit
            root = "/sys/fs/cgroup/"
            left = int(_text(root + most)) - int(_text(root + used))
            files = [line.split()[1] for line in _text(root + cached).splitlines() if "inactive_file" in line]
            free = min(free, left + max(map(int, files), default=0))
    return free


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def _python() -> str | None:
    """This Python's program, or the one beside it where a program has Python inside."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folder = os.path.join(sys.base_exec_prefix, "bin")
    for path in (sys.executable, os.path.join(folder, version), shutil.which(version)):
        if path and os.path.basename(path).startswith("python") and os.access(path, os.X_OK):
            return path
    return None


def _environment() -> dict[str, str]:
    """What a compiler may need; nothing that guards, preloads or changes Python."""
    unwanted = ("TRAPLINE_", "PYTHON", "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


# In the process that builds -----------------------------------------------------------------------


def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:
        what, claimed, niceness = json.load(file)
    os.unlink(sys.argv[1])
    if os.fork() != 0:
        os._exit(0)  # whoever started this waits for no more
    _become_small(niceness)
    return _build(recipe.Recipe(**what), cache.Claim(**claimed))


def _build(what: Recipe, claimed: cache.Claim) -> int:
    claimed.name_this_process()
    done = threading.Event()
    threading.Thread(target=_touch, args=(claimed, done), daemon=True).start()
    cache.note_begun(what.path)
    try:
        recipe.carry_out(what)
    except Exception as error:  # also: no room on the disk, no time left
        with contextlib.suppress(OSError), open(recipe.log_of(what.path), "a", encoding="utf-8") as file:
            file.write(f"{error}\n")  # after what the compiler said
        print(error, flush=True)
        return 2
    finally:
        cache.note_ended(what.path)
        done.set()
        claimed.release()
    return 0


def _become_small(niceness: int) -> None:
    import resource

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.alarm(_WALL_S)
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, _CPU_S),
        (resource.RLIMIT_AS, _MOST_BYTES),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (value, value))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    with contextlib.suppress(OSError):
        os.nice(niceness)


def _end(number: int, frame: object) -> None:
    """The compiler goes too, with all that it has started: they are this process's group."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.killpg(0, signal.SIGTERM)
    if number == signal.SIGALRM:
        raise recipe.BuildError(f"it was ended after {_WALL_S} s")
    sys.exit(128 + number)


def _touch(claimed: cache.Claim, done: threading.Event) -> None:
    while not done.wait(cache.TOUCH_S):
        claimed.touch()


if __name__ == "__main__":
    sys.exit(main())
