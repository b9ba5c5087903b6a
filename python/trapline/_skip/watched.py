"""Steps that would be taken with numbers that are not finite, as the watch says (``--watch light``).

Whether a step would be is known before it where nothing can mend the gradients on their way to the update: an
optimizer of PyTorch's, and no hook of the program's before its step. Else the step is taken on trial, and
undone where it was a fault by the watch's rule.
"""

from __future__ import annotations

import enum
from typing import Any, Callable, Optional

from trapline._library.say import debug
from trapline._skip import ledger, quarantine


class Says(enum.IntEnum):
    """What one rank says of a step. The highest of what all of them say is done."""

    FINE = 0
    ON_TRIAL = 1
    GRADIENT = 2
    LOSS = 3
    HEALED = 4


def _nobody() -> Any:
    return None


_holding: Callable[[], Any] = _nobody
_compiler: Callable[[], Any] = _nobody  # Dynamo's, where it looks at each frame that is called from here


def by_watch(holding: Optional[Callable[[], Any]]) -> None:
    """`holding` gives who is asked (:class:`trapline._watch.holding.Holding`), or None."""
    global _holding, _compiler
    import torch

    _holding = holding or _nobody
    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    _compiler = getattr(frames, "get_eval_frame_callback", _nobody)
    now = _holding()
    if now is not None:
        now.is_asked = True


class Doubt:
    """About one step of one optimizer."""

    def __init__(self, holding: Any, suspect: Any, optimizer: Any, is_certain: bool) -> None:
        self._holding, self._suspect, self._optimizer = holding, suspect, optimizer
        self._level = Says.GRADIENT if suspect.fact["kind"] == "gradient" else Says.LOSS
        self.says = self._level if is_certain else Says.ON_TRIAL

    def of_trial(self, spoilt: bool) -> int:
        """What it says after the step was taken. `spoilt`: the optimizer's state was."""
        return self._level if self._holding.is_harmed(self._suspect) or spoilt else Says.FINE

    def is_told(self, agreed: int) -> bool:
        """Where another rank's loss was not finite, this one's gradients came from there."""
        return agreed > Says.ON_TRIAL and not (agreed == Says.LOSS and self._level == Says.GRADIENT)

    def tell(self, taken: bool = False) -> None:
        """Keep the fault as a healed one is kept."""
        try:
            error = self._holding.error_of(self._suspect, self._optimizer, taken)
            ledger.taint(error)
            data_set, samples = self._holding.rows_of(self._suspect)
            if samples:
                ledger.count_samples(quarantine.add(data_set, samples, error.finding))
        except Exception as problem:
            debug(f"a step that is left out cannot be told: {problem!r}")


def _asked() -> Any:
    """Not in a step that is compiled: the hooks of the watch are nothing there."""
    return None if _compiler() else _holding()


def doubt_of(optimizer: Any, step: Any, in_closure: bool = False) -> Optional[Doubt]:
    """Right before `step` of its class, or in its closure when the first loss was made. None: it is fine."""
    holding = _asked()
    suspect = None if holding is None else holding.suspect_of(optimizer, in_closure)
    if suspect is None or ledger.mode() != "skip":
        return None
    own = step.__module__.startswith("torch.optim.")
    if in_closure:  # the hooks have run
        return Doubt(holding, suspect, optimizer, True) if own else None
    return Doubt(holding, suspect, optimizer, own and not _has_hooks(optimizer))


def _has_hooks(optimizer: Any) -> bool:
    from torch.optim import optimizer as optimizers

    hooks = [
        *getattr(optimizers, "_global_optimizer_pre_hooks", {}).values(),
        *getattr(optimizer, "_optimizer_step_pre_hooks", {}).values(),
    ]
    own = __name__.partition(".")[0]
    return any(str(getattr(hook, "__module__", "")).partition(".")[0] != own for hook in hooks)


def undone() -> None:
    """For the watch: the step that was taken on trial is undone."""
    holding = _asked()
    if holding is not None:
        holding.buffers.put_back()


def left_out(optimizer: Any) -> None:
    """For the watch: this step was not taken."""
    holding = _asked()
    if holding is not None:
        try:
            holding.left_out(optimizer)
        except Exception as problem:
            debug(f"watch: {problem!r}")
