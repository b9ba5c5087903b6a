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
        from trapline._guard import pure
        from trapline._library import kernel

        return pure.install(handler, kernel.load())


def is_wanted():
    return os.environ.get("TRAPLINE_TEST_ADAPTER") == "kernel"


compiled_only = pytest.mark.skipif(
    is_wanted(),
    reason="of the compiled adapter: it is built for one torch, and sees a table that a test preloads",
)

# What the guard for any torch leaves out on a device (docs/adapters.md), by the tests that look at it.
LEFT_OUT = {
    "a healed copy is not used again": (
        "test_a_tensor_is_checked_once_for_forward_and_backward",
        "test_a_call_that_shared_the_copy_is_known_too",
    ),
    "a fault is told once": (
        "test_what_autograd_knows_to_come_of_it_is_told_again",
        "test_no_backward_pass_begins_with_it",
        "test_a_pass_in_a_thread_of_autograd_raises_what_its_program_caused",
        "test_two_threads_with_one_bad_tensor",
    ),
    "a backward pass has no line of the forward call": (
        "test_a_backward_call_shows_the_line_of_its_forward_call",
    ),
    "nothing is checked in a CUDA graph": (
        "test_nothing_is_raised_while_a_graph_is_captured",
        "test_grouped_products_are_checked_in_a_graph",
        "test_a_list_of_lengths_without_padding_is_looked_at_in_a_graph",
    ),
}


def leave_out(items):
    """Skip those tests, and what looks at compiled graphs on a device."""
    reasons = {name: reason for reason, names in LEFT_OUT.items() for name in names}
    for item in items if is_wanted() else ():
        reason = reasons.get(item.originalname)
        if item.path.name == "test_device_compiled.py":
            reason = "compiled graphs are not checked on a device"
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
