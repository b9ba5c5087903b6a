"""Nothing of the guard's may live on in the pool of a CUDA graph tree: the tree counts what is in there.

While the tree warms a function up its allocations go to the pool, and no capture tells the guard so.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import Any


def install() -> None:
    """Follow the context in which torch's graph trees allocate from a pool; torch has imported them."""
    from torch._inductor import cudagraph_trees as trees

    original = getattr(trees, "_use_cuda_memory_pool_manager", None)
    if original is None or hasattr(original, "__trapline__"):
        return

    @contextmanager
    @functools.wraps(original)
    def in_pool(*args: Any, **kwargs: Any) -> Any:
        from trapline._guard import active

        pool = getattr(active.adapter, "device_pool", None)
        if pool is not None:
            pool(True)
        try:
            with original(*args, **kwargs) as entered:
                yield entered
        finally:
            if pool is not None:
                pool(False)

    in_pool.__trapline__ = True  # type: ignore[attr-defined]
    trees._use_cuda_memory_pool_manager = in_pool
