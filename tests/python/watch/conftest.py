"""The watch as it is in steps that it does not look at; some files have a `watch` of their own."""

from __future__ import annotations

import pytest


@pytest.fixture
def watch(monkeypatch):
    pytest.importorskip("torch")
    from trapline._watch import budget, light, watching

    monkeypatch.setattr(watching, "ALWAYS", 4)
    monkeypatch.setattr(budget, "_SHARE", 1e-9)  # after the first steps none is looked at
    light.install()
    yield light
    light.uninstall()


@pytest.fixture
def watch_that_looks():
    """As it is in a program."""
    pytest.importorskip("torch")
    from trapline._watch import light

    light.install()
    yield light
    light.uninstall()


@pytest.fixture
def watch_with_batches():
    """As it is in a program, with the batches that the loader gave."""
    pytest.importorskip("torch")
    from trapline._fault.data import batches
    from trapline._watch import light

    batches.install()
    light.install()
    yield light
    light.uninstall()
    batches.uninstall()
