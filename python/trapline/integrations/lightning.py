"""Lightning's ``Trainer``, as ``lightning`` and as ``pytorch_lightning``.

    trainer = L.Trainer(..., callbacks=[TraplineCallback()])

On the CPU the guard sees step, epoch, stage and module by itself. A GPU reports a fault late, when the
trainer may be steps further: with the callback the finding names the step of the call.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from trapline._library import progress, trainers

__all__ = ["TraplineCallback"]

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # the same under two names; their classes differ


def _bases() -> tuple[type, ...]:
    names = [name for name in _PACKAGES if name in sys.modules]
    for name in () if names else _PACKAGES:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            names.append(name)
            break
    return tuple(importlib.import_module(name).Callback for name in names)


class TraplineCallback(*_bases()):  # type: ignore[misc]
    """Tells where the training is. Changes neither the training nor what it logs."""

    def _tell(self, trainer: Any, *_: Any, **__: Any) -> None:
        progress.note(**trainers.of_lightning(trainer))

    on_train_batch_start = on_validation_batch_start = _tell
    on_test_batch_start = on_predict_batch_start = _tell

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        progress.note()
