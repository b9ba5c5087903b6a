"""Ray: the guard in the workers of Ray Train, of tasks and of actors.

    ray.init(runtime_env=trapline.integrations.ray.runtime_env())

A cluster that the guarded program starts itself needs nothing: its workers inherit the guard. Workers of
one that was running before do not, and Trapline has to be installed where they run.
"""

from __future__ import annotations

from typing import Any, Optional

__all__ = ["guard_worker", "runtime_env"]


def guard_worker() -> None:
    """Guards this worker. A worker that cannot be guarded says so on stderr, and works all the same."""
    import trapline
    from trapline._library.say import say

    try:
        trapline.install()
    except (ImportError, RuntimeError) as problem:
        say(str(problem).removeprefix("trapline: "))


def runtime_env(env: Optional[dict[str, Any]] = None) -> dict[str, Any]:
    """A ``runtime_env`` for ``ray.init`` whose workers are guarded; ``env``: what else is to be in it.

    Raises:
        ValueError: ``env`` has a ``worker_process_setup_hook`` already: call ``guard_worker`` there.
    """
    if env and "worker_process_setup_hook" in env:
        raise ValueError(
            "trapline: runtime_env: there is a worker_process_setup_hook already, and Ray takes one: "
            "call trapline.integrations.ray.guard_worker() in it"
        )
    return {**(env or {}), "worker_process_setup_hook": "trapline.integrations.ray.guard_worker"}
