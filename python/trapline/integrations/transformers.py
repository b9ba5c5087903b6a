"""Hugging Face's ``Trainer`` and its relatives (``Seq2SeqTrainer``, TRL's).

    trainer = Trainer(..., callbacks=[TraplineCallback()])

On the CPU the guard sees step, epoch, phase and model by itself. A GPU reports a fault late, when the
trainer may be steps further: with the callback the finding names the step of the call.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from trapline._library import progress, trainers

__all__ = ["TraplineCallback"]


class TraplineCallback(TrainerCallback):
    """Tells where the training is. Changes neither the training nor its control flow."""

    def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        progress.note(**trainers.of_transformers(state, model, "train"))

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if control.should_evaluate:  # there is no event for the begin of an evaluation
            progress.note(**trainers.of_transformers(state, model, "validation"))

    on_epoch_end = on_step_end

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        progress.note()
