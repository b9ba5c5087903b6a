"""What a trainer says of itself: where it is, as arguments of `progress.note`. Nothing is imported for it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# RunningStage of Lightning's Trainer, where ours is another word.
_STAGES = {"validate": "validation", "sanity_check": "sanity check"}


def model_name(model: Any) -> str:
    """What a model calls itself in its configuration, else its class."""
    name = getattr(getattr(model, "config", None), "name_or_path", None)
    return name if isinstance(name, str) and name else type(model).__name__


def of_transformers(state: Any, model: Any, phase: str, name: str = "Trainer") -> dict[str, Any]:
    """`state`: the TrainerState of transformers' Trainer."""
    told = {"phase": phase, "model": model_name(model), "trainer": name}
    if not state.max_steps or state.epoch is None:  # there was no training: nothing was counted
        return told
    return {"step": state.global_step, "epoch": float(state.epoch), **told}


def of_lightning(trainer: Any) -> dict[str, Any]:
    """`trainer`: Lightning's."""
    stage = getattr(trainer.state.stage, "value", "")
    told = {
        "phase": _STAGES.get(stage, stage),
        "model": model_name(trainer.lightning_module),
        "trainer": "Lightning",
    }
    if getattr(trainer.state.fn, "value", "") != "fit":  # a test counts nothing
        return told
    return {"step": trainer.global_step, "epoch": trainer.current_epoch, **told}
