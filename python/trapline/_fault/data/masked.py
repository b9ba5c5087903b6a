"""Bad integers that all lie where the program's mask says that there is nothing: padding."""

from __future__ import annotations

from typing import Any, Optional

from trapline._fault.data import values
from trapline._fault.program import holders


def masked_by(tensor: Any, scan: dict[str, Any], predicate: Optional[int]) -> Optional[str]:
    """The variable that holds the mask: 1 for what counts and 0 behind it, or before it, in each row.

    PyTorch's own say it the other way round: what is filled in is one number, and that is bad.
    """
    if tensor.dtype.is_floating_point or tensor.dim() != 2 or tensor.numel() > values.MAX_ELEMENTS:
        return None
    bad = values.bad_mask(tensor.detach().reshape(-1).cpu(), scan, predicate)
    if bad is None or not bool(bad.any()):
        return None
    bad = bad.reshape(tensor.shape)
    for frame in holders.user_frames():
        for name, held in holders.held_by(frame):
            if held is not tensor and tuple(getattr(held, "shape", ())) == tuple(tensor.shape):
                mask = holders.as_tensor(held, values.MAX_ELEMENTS)
                if mask is None or not _is_mask(mask) or not bool((mask[bad] == 0).all()):
                    continue
                filled = tensor.detach().cpu()[mask == 0]
                if bool((filled == filled[0]).all()):
                    return name
    return None


def _is_mask(mask: Any) -> bool:
    if not bool(((mask == 0) | (mask == 1)).all()) or not bool(mask.any()) or bool(mask.all()):
        return False
    steps = mask.int().diff(dim=1)
    return bool((steps <= 0).all()) or bool((steps >= 0).all())
