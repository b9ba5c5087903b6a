"""The guard for any torch, its kernels in C, as the tests use an adapter's module.

With TRAPLINE_TEST_ADAPTER=kernel tests/guard and tests/device run over it.
"""

from __future__ import annotations

import os

import pytest


class Portable:
    """Looks like the extension module of the compiled adapter."""

    def __getattr__(self, name):
        from trapline._guard import pure

        return getattr(pure, name)

    def install(self, handler):
        from trapline._guard import kernel, pure

        return pure.install(handler, kernel.load())


def is_wanted():
    return os.environ.get("TRAPLINE_TEST_ADAPTER") == "kernel"


compiled_only = pytest.mark.skipif(
    is_wanted(),
    reason="of the compiled adapter: it is built for one torch, and sees a table that a test preloads",
)
