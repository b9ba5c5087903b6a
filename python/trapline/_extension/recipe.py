"""What a build is made of, as data, and its carrying out.

Whoever has torch writes the recipe; whoever carries it out needs no torch, no site-packages and no settings
but the compiler's own. That is what a build in the background is (:mod:`.background`).
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from typing import NamedTuple

from trapline._extension import owner

# Stands in commands for the folder that a build works in.
WORK = "@work@"
# How the name of such a folder begins.
PREFIX = ".building-"


class BuildError(Exception):
    """The adapter cannot be built here; ``str()`` is one line: what, why, what to do."""


class Recipe(NamedTuple):
    """How a library is made, and what goes with it."""

    made: dict[str, str]  # where what the commands make in the working folder goes; the library is the first
    says: str  # what messages call it
    rooms: dict[str, str]  # links in the working folder, as sources say "<room>/..."
    files: dict[str, str]  # texts that are written there
    commands: list[list[str]]  # one after the other

    @property
    def path(self) -> str:
        """The library."""
        return next(iter(self.made.values()))


def log_of(path: str) -> str:
    """Where the compiler's words go when the library at ``path`` could not be made."""
    return path[: -len(".so")] + ".log"


def carry_out(recipe: Recipe) -> None:
    """Compile and link in a folder beside the library, then rename: nobody ever sees half a library.

    Nothing is done where all is there.
    """
    if all(map(os.path.isfile, recipe.made.values())):
        return
    log = log_of(recipe.path)
    prefix = PREFIX + owner.this_process() + "-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=os.path.dirname(recipe.path)) as work:
        for room, folder in recipe.rooms.items():
            os.symlink(folder, os.path.join(work, room))
        for name, text in recipe.files.items():
            with open(os.path.join(work, name), "w", encoding="utf-8") as file:
                file.write(text)
        for command in recipe.commands:
            run([word.replace(WORK, work) for word in command], log, recipe.says)
        for name, path in reversed(recipe.made.items()):  # who sees the library finds the others
            os.replace(os.path.join(work, name), path)
    if os.path.exists(log):
        os.unlink(log)


def run(command: list[str], log: str, says: str) -> None:
    """One command of a build; what it said goes into ``log`` when it fails."""
    done = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode == 0:
        return
    with open(log, "wb") as file:
        file.write((shlex.join(command) + "\n").encode(errors="surrogateescape") + done.stdout)
    said = re.search(rb"error: (.*)", done.stdout)
    why = f" ({said.group(1).decode(errors='replace')})" if said else ""
    raise BuildError(f"trapline: {says}: {command[0]} failed{why}: see {log}: report it with that file")
