"""Assertions for a test suite: ``trapline.testing.assert_labels(batch["labels"], 10)``.

They take what the check functions of :mod:`trapline` take, and raise ``AssertionError`` with the finding's
summary and its advice.
"""

from __future__ import annotations

from typing import Any, Callable

from trapline._check import rules
from trapline._library.errors import DeviceAssertError


def _assert(check: Callable[..., None], *args: Any, **options: Any) -> None:
    __tracebackhide__ = True  # pytest shows the caller's line
    try:
        check(*args, **options)
    except DeviceAssertError as error:
        code = error.finding.get("code", "TL901")
        helps = [f"help: {fix}" for fix in error.finding.get("fix", [])]
        raise AssertionError("\n".join([f"[{code}] {error}", *helps])) from None


def assert_labels(x: Any, num_classes: int, ignore_index: int | None = -100, **options: Any) -> None:
    """Class labels of any shape and integer dtype are in [0, num_classes), or ``ignore_index``."""
    __tracebackhide__ = True
    _assert(rules.check_labels, x, num_classes, ignore_index, **options)


def assert_ids(x: Any, num_embeddings: int, **options: Any) -> None:
    """Ids of any shape and integer dtype are in [0, num_embeddings)."""
    __tracebackhide__ = True
    _assert(rules.check_ids, x, num_embeddings, **options)


def assert_finite(x: Any, **options: Any) -> None:
    """Floating point numbers of any shape: neither NaN nor infinite."""
    __tracebackhide__ = True
    _assert(rules.check_finite, x, **options)


def assert_probs(x: Any, **options: Any) -> None:
    """Rows of the last dimension are finite, >= 0 and have a sum above 0."""
    __tracebackhide__ = True
    _assert(rules.check_probs, x, **options)
