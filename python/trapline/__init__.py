"""Trapline in the user's process: names the cause of a device-side assert before the kernel can fire it.

Programs started by ``trapline run`` need nothing from here. A notebook or a script guards itself with::

    import trapline

    trapline.install()

From then on a bad label, token id, index or probability raises :class:`DeviceAssertError`, with the offending
element, its value and what would be valid, at the line that made the mistake.

Importing this package is cheap: it imports neither torch nor the compiled library.
"""

from __future__ import annotations

from trapline._library import VERSION as __version__
from trapline._library.errors import DeviceAssertError, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CheckedLoader",
    "DeviceAssertError",
    "RequestRefused",
    "__version__",
    "check_finite",
    "check_ids",
    "check_labels",
    "check_loss",
    "check_probs",
    "checked",
    "checking_collate",
    "enabled",
    "install",
    "is_active",
    "note_progress",
    "request",
    "set_enabled",
    "standby",
    "uninstall",
]


def install() -> None:
    """Guard this process: now if torch is imported, else as soon as it is. Calling it again changes nothing.

    Where no compiled guard fits this torch, a slower one takes its place, and where there is a C++ compiler
    the compiled one is built in the background for the next start.

    Raises:
        ImportError: libtrapline.so is missing or of another version.
        RuntimeError: torch is imported, but no guard fits it; the message says what to do.
    """
    from trapline import _boot
    from trapline._library import paths

    paths.library()
    _boot.install()
    if _boot.failure() is not None:
        raise RuntimeError(_boot.failure())


def uninstall() -> None:
    """Take the guard out of this process. Call it while no operation runs in another thread."""
    from trapline import _boot

    _boot.uninstall()


def is_active() -> bool:
    """True when the guard is in torch's operations, whether or not it is switched off for the moment."""
    from trapline import _boot

    return _boot.is_active()


def set_enabled(on: bool) -> bool:
    """Switch the checks of this process on or off; a switched-off guard costs next to nothing.

    Returns:
        The state before, so that it can be put back.
    """
    from trapline import _boot

    return _boot.set_enabled(bool(on))


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext trapline``: guards the session; each fault is shown below its cell. See ``%trapline``."""
    from trapline._notebook import extension

    extension.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext trapline``: takes the guard out again."""
    from trapline._notebook import extension

    extension.unload(shell)


class enabled:
    """``with trapline.enabled(False): ...`` switches the checks off inside the block, and back after it."""

    def __init__(self, on: bool = True) -> None:
        self._on = bool(on)
        self._before: list[bool] = []

    def __enter__(self) -> enabled:
        self._before.append(set_enabled(self._on))
        return self

    def __exit__(self, *_: object) -> None:
        set_enabled(self._before.pop())


def standby() -> None:
    """Under ``trapline supervise --standby``: this process has done its imports, and waits for its turn.

    Call it where the program is ready to take over and holds nothing that the running one needs. Any other
    process returns at once.
    """
    from trapline._supervise import standby

    standby.wait()


# The checks of data at hand: loaded when first used, so that a guarded program does not pay for them.
_RULES = ("check_finite", "check_ids", "check_labels", "check_loss", "check_probs")
_LOADERS = ("CheckedLoader", "checked", "checking_collate")


def __getattr__(name: str) -> Any:
    if name in _RULES:
        from trapline._check import rules

        return getattr(rules, name)
    if name in _LOADERS:
        from trapline._check import loader

        return getattr(loader, name)
    if name == "note_progress":
        from trapline._library import progress

        globals()[name] = progress.note  # a loop calls it at every step
        return progress.note
    if name == "request":
        from trapline._supervise.request import request

        return request
    raise AttributeError(f"module 'trapline' has no attribute {name!r}")
