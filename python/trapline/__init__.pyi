from collections.abc import Iterator
from types import TracebackType
from typing import Any, Callable

__version__: str

class DeviceAssertError(IndexError, RuntimeError):
    """An operation was given an element that a CUDA kernel would have died of.

    ``str()`` is the finding's summary. It can be pickled, and made again from its text alone.
    """

    finding: dict[str, Any]
    """The finding as in ``docs/finding.schema.json``; ``{}`` when only the text crossed a process border."""

    def __init__(self, summary: str = "", finding: dict[str, Any] | None = None) -> None: ...

class RequestRefused(DeviceAssertError):
    """This request caused a fault before and was not tried again; ``finding`` has that fault's code."""

class request:
    """``with trapline.request(name): ...`` names the request that the block works on in every finding.

    ``content``: what makes it the same as another one; without it the identifier does. A request that had a
    fault is refused the next time.

    Raises:
        RequestRefused: on entering, before anything of the request is worked on.
    """

    identifier: str
    def __init__(
        self, identifier: object = None, *, content: bytes | bytearray | memoryview | str | None = None
    ) -> None: ...
    @property
    def fingerprint(self) -> str: ...
    def __enter__(self) -> request: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

def standby() -> None:
    """Under ``trapline supervise --standby``: says that this process is ready, and waits for its turn.

    Any other process returns at once.
    """

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

def note_progress(
    *,
    step: int | None = None,
    epoch: float | None = None,
    phase: str | None = None,
    model: str | None = None,
    trainer: str | None = None,
) -> None:
    """Tells where the training of this thread or task is; findings from now on say so.

    ``step``: optimizer steps finished; ``phase``: ``"train"``, ``"validation"``, ``"test"``, ``"predict"`` or
    a word of the program's own. What is not given stays as it was told before; without any argument it is
    over. A few microseconds; never raises. ``trapline.integrations`` has this for the usual trainers.
    """

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

def check_labels(
    x: Any, num_classes: int, ignore_index: int | None = -100, *, column: str | None = None
) -> None:
    """Class labels are in [0, num_classes), or equal to ``ignore_index`` (None: no such value).

    ``x``: any shape, integers of any width or whole floating point numbers, of NumPy, torch (a tensor on
    a device is judged there), Arrow, pandas, polars, DLPack, a buffer or a list. Nothing is copied, the GIL
    is released while it is read. ``column`` names the column of a table.

    Raises:
        DeviceAssertError: a label is outside; ``error.finding`` has its place, value, range and counts.
        TypeError: ``x`` holds no numbers, or none of the right kind.
        ValueError: ``num_classes`` is not above 0.
    """

def check_ids(
    x: Any, num_embeddings: int, *, positions: int | None = None, column: str | None = None
) -> None:
    """Ids are in [0, num_embeddings). ``x`` as in :func:`check_labels`, lists of ids per row included.

    With ``positions`` the last dimension, or a row's list, is a sequence of at most so many ids.
    Raises as :func:`check_labels` does.
    """

def check_finite(x: Any, *, column: str | None = None) -> None:
    """Floating point numbers, any shape and width, 8 bits included: neither NaN nor infinite.

    ``x`` may also be a module, a state dict, or a list or iterator of parameters; the finding names
    the tensor, and
    tensors of integers are passed over.

    Raises as :func:`check_labels`.
    """

def check_probs(x: Any, *, column: str | None = None) -> None:
    """Rows of the last dimension: finite, >= 0, sum above 0; they need not sum to 1.

    Raises as :func:`check_labels`.
    """

def check_loss(
    loss_fn: Callable[..., Any], input: Any, target: Any, *, ignore_index: int | None = None
) -> Any:
    """``loss_fn(input, target)`` after a check of both against what the loss wants.

    Known by name: cross_entropy, nll_loss, multi_margin_loss, binary_cross_entropy, its form with logits,
    mse_loss, l1_loss, and their modules; ``functools.partial`` of one is looked through.
    ``input``: (N, C, ...) floating point, ``target`` as the loss takes it, torch tensors both.
    ``ignore_index`` is
    handed on to a function that takes class numbers; a module must have been made with the same.

    Raises:
        DeviceAssertError: an element is outside of what the loss takes.
        TypeError: the loss is not known.
    """

class CheckedLoader:
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...

def checked(
    loader: Any,
    *,
    labels: Any = None,
    num_classes: int | None = None,
    ids: Any = None,
    num_embeddings: int | None = None,
    finite: Any = (),
    ignore_index: int | None = -100,
    positions: int | None = None,
) -> CheckedLoader:
    """``for batch in trapline.checked(loader, num_classes=10)``: checks every batch before it is handed on.

    ``labels``, ``ids``, ``finite``: the part of the batch, as a key, an attribute or a position; labels are
    ``batch[1]`` and ids ``batch[0]`` unless said otherwise, in a batch that is a dictionary ``labels``
    (``label``,
    ``label_ids``) and ``input_ids``. The finding's ``sample`` names batch and row.
    """

def checking_collate(collate_fn: Callable[[list], Any] | None = None, **checks: Any) -> Callable[[list], Any]:
    """A ``collate_fn`` for a DataLoader that collates and checks, in the worker.

    Options as :func:`checked`.
    """
