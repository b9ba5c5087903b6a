"""The one exception that Trapline raises in the user's program."""

from __future__ import annotations


class DeviceAssertError(IndexError, RuntimeError):
    """An operation was given an element that a CUDA kernel would have died of.

    It is an ``IndexError`` and a ``RuntimeError``, the two that PyTorch itself raises for these mistakes,
    so that handlers written for PyTorch's own error keep working. ``str()`` is the finding's summary, and
    on the CPU, where the operation itself refuses the value, PyTorch's own words for it in a second line.

    Attributes:
        finding: the whole finding, as in ``docs/finding.schema.json``; ``{}`` when only the text crossed
            a process border (a DataLoader worker's error arrives in the main process as text).
    """

    def __init__(self, summary: str = "", finding: dict | None = None) -> None:
        super().__init__(summary)
        self.finding: dict = {} if finding is None else finding

    @property
    def summary(self) -> str:
        """The finding's summary: the text without PyTorch's words."""
        return str(self).partition("\n(PyTorch: ")[0]

    def __reduce__(self) -> tuple:
        return type(self), (str(self), self.finding)


# Users see and pickle it under its public name.
DeviceAssertError.__module__ = "trapline"
