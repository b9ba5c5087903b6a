"""What the environment asks for: the one place in Python that knows the TRAPLINE_* variables.

``trapline run`` sets most of them from its flags (``src/run/environment.cpp``). They are read when they are
asked for, since a program may change its environment. What they were at the start counts only where the
program has emptied its environment since: that says nothing about us.
"""

from __future__ import annotations

import os

_MARK = "TRAPLINE_GUARD"  # set by `trapline run`, and by nobody unset alone
_at_start: dict[str, str] = {}


def keep() -> None:
    """Called at start-up, before the program has touched its environment."""
    _at_start.update({name: text for name, text in os.environ.items() if name.startswith("TRAPLINE_")})


def _text(variable: str, otherwise: str = "") -> str:
    text = os.environ.get(variable)
    if text is None and _MARK in _at_start and _MARK not in os.environ:
        text = _at_start.get(variable)
    return otherwise if text is None else text


def is_off() -> bool:
    """Leave this process alone."""
    return _text("TRAPLINE_OFF") == "1"


def debugs() -> bool:
    """Say on stderr when a part steps aside, and why."""
    return _text("TRAPLINE_DEBUG") == "1"


def report_dir() -> str | None:
    """The folder that ``trapline run`` collects findings from; None when the guard is used as a library."""
    return _text("TRAPLINE_REPORT_DIR") or None


# Flags of ``trapline run`` ------------------------------------------------------------------------


def on_fault() -> str:
    """``raise``, ``skip`` or ``stop``."""
    return _text("TRAPLINE_ON_FAULT", "raise")


def skip_limit(otherwise: float) -> float:
    """How many percent of the optimizer steps may be left out."""
    return _number("TRAPLINE_SKIP_LIMIT", otherwise)


def quarantine() -> str | None:
    """The file that bad samples go to and that a later run leaves out."""
    return _text("TRAPLINE_QUARANTINE") or None


def watch() -> str:
    """``light``: loss and gradients; ``nan``: every module; ``nan:stop``: and end at the first; ``off``."""
    return _text("TRAPLINE_WATCH", "light")


def steps() -> int | None:
    """End the program after so many optimizer steps."""
    text = _text("TRAPLINE_STEPS")
    return int(text) if text.isdigit() else None


# The device of ``--cpu`` --------------------------------------------------------------------------


def wants_cpu() -> bool:
    """Run a program for CUDA on the CPU."""
    return _text("TRAPLINE_CPU") == "1"


def cpu_late() -> str:
    """The seed of ``--cpu-late``; "" where work is done at once."""
    return _text("TRAPLINE_CPU_LATE")


def cpu_devices() -> str:
    """How many devices there are to be."""
    return _text("TRAPLINE_CPU_DEVICES")


def say_once_for_cpu() -> bool:
    """True for the first process of a run that asks; those that it starts do not say it again."""
    if os.environ.get("TRAPLINE_CPU_SAID") == "1":
        return False
    os.environ["TRAPLINE_CPU_SAID"] = "1"
    return True


def use_driver(path: str) -> None:
    """Have the guard's checks of a device use this CUDA driver."""
    os.environ["TRAPLINE_CUDA_DRIVER"] = path


def take_device_for_host() -> None:
    """Have the guard look at the device's memory at once, unless somebody has said otherwise."""
    os.environ.setdefault("TRAPLINE_DEVICE_TYPE", "host")


def device_is_host() -> bool:
    """The memory of CUDA tensors is host memory."""
    return _text("TRAPLINE_DEVICE_TYPE") == "host"


def heal_cap_mb(otherwise: float) -> float:
    """How large a tensor on the device may be that is copied to be healed."""
    return _number("TRAPLINE_HEAL_CAP_MB", otherwise)


# What ``trapline supervise`` sets ------------------------------------------------------------------


def supervise_dir() -> str | None:
    """The supervisor's private folder, which its processes share over restarts."""
    return _text("TRAPLINE_SUPERVISE_DIR") or None


def context_socket() -> str | None:
    """Where the supervisor asks whether the CUDA context lives."""
    return _text("TRAPLINE_CONTEXT_SOCKET") or None


def is_standby() -> bool:
    """This process is to wait for its turn."""
    return "TRAPLINE_STANDBY_FD" in os.environ


def take_standby_fd() -> int | None:
    """The descriptor by which a standby says that it is ready and learns that it is its turn.

    It is for this process alone: what it starts must not find the variable.
    """
    text = os.environ.pop("TRAPLINE_STANDBY_FD", "")
    return int(text) if text.isdigit() else None


def listening() -> range:
    """The listening descriptors that were handed on to this process, as systemd numbers them."""
    count = os.environ.get("LISTEN_FDS", "")
    return range(3, 3 + int(count)) if count.isdigit() else range(0)


def cuda_driver() -> str | None:
    """The CUDA driver's library, where it is not the system's."""
    return _text("TRAPLINE_CUDA_DRIVER") or None


# Where things are, and how they are built ---------------------------------------------------------


def library() -> str | None:
    """The path of libtrapline.so."""
    return _text("TRAPLINE_LIB") or None


def build_dir() -> str | None:
    """The build tree of a source checkout."""
    return _text("TRAPLINE_BUILD_DIR") or None


def adapter() -> str:
    """Which guard is wanted: ``kernel`` (for any torch), ``pure`` (in Python); ``""``: the best there is."""
    return _text("TRAPLINE_ADAPTER")


def adapter_dir() -> str | None:
    """A folder with compiled adapters, asked before all others."""
    return _text("TRAPLINE_ADAPTER_DIR")


def build(waits: bool) -> str:
    """What happens where nothing compiled fits this torch: ``wait`` for a build, ``background``, ``never``.

    ``waits``: what is meant where nobody says.
    """
    text = _text("TRAPLINE_BUILD")
    otherwise = "wait" if waits else "background"
    return text if text in ("wait", "background", "never") else otherwise


def forbid_builds() -> str:
    """Let no build begin because of what this process asks; what was set goes to `allow_builds`."""
    before = _text("TRAPLINE_BUILD")
    os.environ["TRAPLINE_BUILD"] = "never"
    return before


def allow_builds(before: str) -> None:
    """What the user has set counts again."""
    os.environ["TRAPLINE_BUILD"] = before


def build_wait(otherwise: float) -> float:
    """How many seconds at most to wait for a build."""
    return _number("TRAPLINE_BUILD_WAIT", otherwise)


def compiler_flags() -> str:
    """Further flags for the compiler, as a shell writes them."""
    return _text("TRAPLINE_GUARD_CXXFLAGS")


def sources(room: str) -> tuple[str, str | None]:
    """The variable that names the folder of a room's sources, and what it says."""
    variable = f"TRAPLINE_{room.upper()}_SRC"
    return variable, _text(variable) or None


def _number(variable: str, otherwise: float) -> float:
    try:
        return float(_text(variable))
    except ValueError:
        return otherwise
