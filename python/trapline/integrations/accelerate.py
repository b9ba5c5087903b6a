"""Hugging Face's Accelerate, and any other loop of one's own.

    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    follow(model, optimizer, loader)

The guard sees batch and sample by itself. A loop of one's own has no place to look for steps and epochs:
this counts them.
"""

from __future__ import annotations

from typing import Any

from trapline._library import progress, trainers

__all__ = ["follow"]


class follow:
    """Counts the steps of an optimizer, and tells them at each forward pass of the model.

    Steps that Accelerate only accumulates are none. `loader` gives the epoch, `step` where a resumed training
    begins. `remove()` ends it.
    """

    def __init__(self, model: Any, optimizer: Any, loader: Any = None, *, step: int = 0) -> None:
        self.step = step
        self._loader = loader
        inner = model.module if hasattr(model, "module") else model  # within DistributedDataParallel
        self._model = trainers.model_name(inner)
        optimizer = getattr(optimizer, "optimizer", optimizer)  # within AcceleratedOptimizer
        self._hooks = [
            model.register_forward_pre_hook(self._at_forward),
            optimizer.register_step_post_hook(self._after_step),
        ]

    def _at_forward(self, model: Any, _: Any) -> None:
        phase = "train" if model.training else "evaluation"
        epoch = getattr(self._loader, "iteration", None)
        progress.note(step=self.step, epoch=epoch, phase=phase, model=self._model, trainer="Accelerate")

    def _after_step(self, *_: Any) -> None:
        self.step += 1

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        progress.note()
