"""A DataLoader's sampler that draws by weights: its name in the program, and where its weights came from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

from trapline._fault.data import values
from trapline._fault.program import holders, owners, scope

_FILE = "/torch/utils/data/sampler.py"
_MAX = 1 << 22


def sampler_facts(tensor: Any, scan: dict[str, Any]) -> Optional[dict[str, Any]]:
    """`name` of the weights that a running sampler of PyTorch's draws by, and the user's `variable`."""
    frames = scope.live_frames()
    for frame in frames[:4]:
        sampler = frame.f_locals.get("self")
        weights = holders.attributes(sampler).get("weights")
        if frame.f_code.co_filename.replace("\\", "/").endswith(_FILE) and scope.is_tensor(weights):
            found: dict[str, Any] = {"name": f"{_name(sampler)}.weights"}
            variable = _variable(tensor, scan)
            return {**found, "variable": variable} if variable else found
    return None


def _name(sampler: Any) -> str:
    for name, value in _reach():
        if value is sampler:
            return name
        if any(part is sampler for key, part in holders.attributes(value).items() if key == "sampler"):
            return f"{name}.sampler"
    return "sampler"


def _reach() -> Iterator[tuple[str, Any]]:
    for frame in holders.user_frames():
        yield from scope.variables(frame)


def _variable(tensor: Any, scan: dict[str, Any]) -> Optional[dict[str, Any]]:
    """The sampler made doubles of what it was given: the same numbers, NaN where it is NaN."""
    first = scan.get("first", -1)
    for frame in holders.user_frames() if first >= 0 else ():
        for name, value in holders.held_by(frame):
            held = holders.as_tensor(value, _MAX)
            if held is None or held.numel() != tensor.numel() or owners.is_module(value):
                continue
            same = held.reshape(-1).to(tensor.dtype), tensor.reshape(-1)
            both_nan = same[0].isnan() & same[1].isnan()
            if bool(((same[0] == same[1]) | both_nan).all()) and "sampler" not in name:
                return {"name": name, "index": values.unravel(first, held.shape)}
    return None
