from types import TracebackType
from typing import Any

__version__: str

class DeviceAssertError(IndexError, RuntimeError):
    """An operation was given an element that a CUDA kernel would have died of.

    ``str()`` is the finding's summary. It can be pickled, and made again from its text alone.
    """

    finding: dict[str, Any]
    """The finding as in ``docs/finding.schema.json``; ``{}`` when only the text crossed a process border."""

    def __init__(self, summary: str = "", finding: dict[str, Any] | None = None) -> None: ...

def install() -> None:
    """Guard this process: now if torch is imported, else as soon as it is. Calling it again changes nothing.

    Checked are the arguments of the contracts table (``include/trapline/capi.h``): dense tensors in host
    memory of any shape and stride, of the integer or floating point dtypes that the operation itself
    accepts. Results are not touched.

    Raises:
        ImportError: libtrapline.so is missing or of another version.
        RuntimeError: torch is imported, but no guard fits it; the message says what to do.
    """

def uninstall() -> None:
    """Take the guard out of this process. Call it while no operation runs in another thread."""

def is_active() -> bool:
    """True when the guard is in torch's operations, whether or not it is switched off for the moment."""

def set_enabled(on: bool) -> bool:
    """Switch the checks of this process on or off. Returns the state before."""

class enabled:
    """``with trapline.enabled(False): ...`` switches the checks off inside the block, and back after it."""

    def __init__(self, on: bool = True) -> None: ...
    def __enter__(self) -> enabled: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
