"""Where a training is, as the trainer's own frames show it while it runs: nobody has to tell.

Only what the trainer itself says of its state is taken. Where a device reports a fault late, only what does
not change from one step to the next is.
"""

from __future__ import annotations

import sys
from typing import Any

from trapline._fault.program import scope
from trapline._library import progress, trainers
from trapline._library.say import debug_failure

# The files in which a trainer's methods stand, without what goes before.
_TRANSFORMERS = ("/transformers/trainer.py", "/transformers/trainer_seq2seq.py")
_LIGHTNING = ("/lightning/pytorch/trainer/trainer.py", "/pytorch_lightning/trainer/trainer.py")
_LIGHTNING_STEPS = ("/pytorch/strategies/strategy.py", "/pytorch_lightning/strategies/strategy.py")
# Methods of transformers' Trainer and of Lightning's strategies, and the phase that they are.
_PHASES = {
    "training_step": "train",
    "evaluate": "validation",
    "validation_step": "validation",
    "test_step": "test",
    "predict": "predict",
    "predict_step": "predict",
}
_RAY_TRAIN = "/ray/train/"
_LASTING = ("model", "trainer")


def progress_facts(told: dict[str, Any], late: bool = False) -> dict[str, Any]:
    """What was told (`trapline.note_progress`), and what a running trainer says, which goes before."""
    try:
        seen = _seen()
    except Exception:  # another trainer than it looks like, or one that is not ready yet
        debug_failure("trainer")
        seen = {}
    if late:
        return progress.merged({name: seen[name] for name in _LASTING if name in seen}, told)
    return progress.merged(told, seen)


def _seen() -> dict[str, Any]:
    phase = ""
    for frame in scope.live_frames():  # innermost first
        file = frame.f_code.co_filename.replace("\\", "/")
        if file.endswith(_TRANSFORMERS):
            phase = phase or _PHASES.get(frame.f_code.co_name, "")
            trainer = frame.f_locals.get("self")
            if phase and hasattr(trainer, "state"):
                return trainers.of_transformers(trainer.state, trainer.model, phase, type(trainer).__name__)
        elif file.endswith(_LIGHTNING_STEPS):
            phase = phase or _PHASES.get(frame.f_code.co_name, "")
        elif file.endswith(_LIGHTNING):
            trainer = frame.f_locals.get("self")
            if hasattr(trainer, "lightning_module"):
                told = trainers.of_lightning(trainer)
                return {**told, "phase": told["phase"] or phase}  # it forgets its stage when an error ends it
        elif _RAY_TRAIN in file and "ray.train" in sys.modules:
            name = sys.modules["ray.train"].get_context().get_experiment_name()
            return {"trainer": f"Ray Train {name}"}
    return {}
