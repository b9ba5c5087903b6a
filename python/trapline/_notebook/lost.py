"""A CUDA context that is lost: said in plain words, with what can still be saved.

After a device-side assert every call to the GPU fails, in this process, for good. Variables in host memory
are as they were.
"""

from __future__ import annotations

import html
import os
import pickle
import types
from typing import Any

from trapline._notebook import cards
from trapline._supervise import lost

_MAX_NAMES = 12
_told = ""


class NotInHostMemory(Exception):
    """The value holds a tensor whose memory cannot be read any more."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor) and value.device.type != "cpu":
            raise NotInHostMemory(str(value.device))
        return NotImplemented


class _Nothing:
    """A file that keeps nothing."""

    def write(self, data: Any) -> int:
        return len(data)


def error() -> str:
    """The error of the context, in one line; "" where it lives or there is none."""
    return lost.error() or ""


def after_cell(result: Any) -> None:
    """When a cell has ended: tells of a lost context, once."""
    if getattr(result, "error_in_exec", None) is not None and not _told:
        from IPython import get_ipython

        tell(get_ipython())


def tell(shell: Any) -> bool:
    """Says that the context is lost, where it is."""
    global _told
    _told = error()
    if not _told:
        return False
    kept, gone = variables(shell)
    paragraphs = [
        f"The CUDA context of this session is lost ({_told}). Every call to the GPU fails until the kernel is"
        " restarted; what is in host memory is as it was.",
        f"Can be saved: {_names(kept)}. On the GPU, and gone: {_names(gone)}.",
        "%trapline save FILE writes the first into a file; %trapline restart starts a new kernel. There, run"
        " %load_ext trapline first: the same mistake then fails its cell, with its cause, and the session"
        " lives on.",
    ]
    page = "".join(f"<p>{html.escape(text)}</p>" for text in paragraphs)
    cards.publish(shell, "trapline: " + "\n".join(paragraphs), f"<div>{page}</div>")
    return True


def variables(shell: Any) -> tuple[list[str], list[str]]:
    """The user's variables: those that can be written into a file, and those that need the GPU."""
    kept, gone = [], []
    for name, value in _of_user(shell).items():
        try:
            _Pickler(_Nothing(), protocol=5).dump(value)
        except NotInHostMemory:
            gone.append(name)
        except Exception:  # it cannot be written, lost or not: a generator, an open file
            continue
        else:
            kept.append(name)
    return kept, gone


def save(shell: Any, path: str) -> str:
    """Writes the variables in host memory into a new file; what was done, in one line.

    Raises:
        OSError: the file is there, or cannot be written.
    """
    kept, gone = variables(shell)
    mine = _of_user(shell)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        pickle.dump({name: mine[name] for name in kept}, file, protocol=5)
    left = f"; not written, since they are on the GPU: {_names(gone)}" if gone else ""
    back = f"import pickle; globals().update(pickle.load(open({path!r}, 'rb')))"
    return f"{_names(kept)} in {path}{left}. To get them back: {back}"


def _of_user(shell: Any) -> dict[str, Any]:
    hidden = getattr(shell, "user_ns_hidden", {})
    return {
        name: value
        for name, value in shell.user_ns.items()
        if not name.startswith("_")
        and name not in hidden
        and not isinstance(value, (types.ModuleType, types.FunctionType, type))
        and name not in ("In", "Out", "exit", "quit", "get_ipython")
    }


def _names(names: list[str]) -> str:
    if not names:
        return "nothing"
    shown = ", ".join(names[:_MAX_NAMES])
    return shown if len(names) <= _MAX_NAMES else f"{shown} and {len(names) - _MAX_NAMES} more"
