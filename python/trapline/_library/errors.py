"""The exceptions that Trapline raises in the user's program: one, and its special case."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

_ARGS = BaseException.args  # type: ignore[attr-defined]


class DeviceAssertError(IndexError, RuntimeError):
    """An operation was given an element that a CUDA kernel would have died of.

    It is an ``IndexError`` and a ``RuntimeError``, the two that PyTorch itself raises for these mistakes,
    so that handlers written for PyTorch's own error keep working. ``str()`` is the finding's summary, and
    on the CPU, where the operation itself refuses the value, PyTorch's own words for it in a second line.

    Attributes:
        finding: the whole finding, as in ``docs/finding.schema.json``; ``{}`` when only the text crossed
            a process border (a DataLoader worker's error arrives in the main process as text).
    """

    # Makes summary and finding of a fault that nobody may ever ask about: a loop can catch ten thousand.
    _ask: Optional[Callable[[], tuple[str, dict]]] = None

    def __init__(self, summary: str = "", finding: dict | None = None) -> None:
        super().__init__(summary)
        self._finding: dict = {} if finding is None else finding

    @classmethod
    def asked_later(cls, ask: Callable[[], tuple[str, dict]]) -> DeviceAssertError:
        """An error whose summary and finding ``ask`` makes when one of them is read. It must not raise."""
        error = cls()
        error._ask = ask
        return error

    def _know(self) -> None:
        ask = self.__dict__.pop("_ask", None)
        if ask is not None:
            summary, self._finding = ask()
            _ARGS.__set__(self, (summary,))

    @property
    def args(self) -> tuple:  # type: ignore[override]
        self._know()
        return _ARGS.__get__(self)

    @args.setter
    def args(self, values: Any) -> None:
        self._know()
        _ARGS.__set__(self, values)

    @property
    def finding(self) -> dict:
        self._know()
        return self._finding

    @finding.setter
    def finding(self, finding: dict) -> None:
        self._know()
        self._finding = finding

    @property
    def summary(self) -> str:
        """The finding's summary: the text without PyTorch's words."""
        # Ray's own text of an error that came from a worker begins with the worker.
        return self.finding.get("summary") or str(self).partition("\n(PyTorch: ")[0]

    def __str__(self) -> str:
        self._know()
        return super().__str__()

    def __repr__(self) -> str:
        self._know()
        return super().__repr__()

    def _repr_html_(self) -> Optional[str]:
        """What a notebook shows of it, where it is a cell's value."""
        from trapline._library import diagnose

        try:
            return diagnose.render_html(self.finding) or None if self.finding else None
        except Exception:  # there is no library: the text it is
            return None

    def __reduce__(self) -> tuple:
        return type(self), (str(self), self.finding)


class RequestRefused(DeviceAssertError):
    """This request caused a fault before and was not tried again; ``finding`` has that fault's code."""


# Users see and pickle them under their public names.
DeviceAssertError.__module__ = RequestRefused.__module__ = "trapline"
