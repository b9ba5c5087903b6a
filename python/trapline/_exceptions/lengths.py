"""The first wrong length that ctc_loss refused, and its sample: the message has the value alone."""

from __future__ import annotations

import re
from typing import Any

from trapline._fault.data import values, which

Facts = dict[str, Any]
_REFUSED = re.compile(r"Expected (input|target)_lengths to have value at (most|least) (\d+), but got value")
_MOST = 1 << 20


def facts_of(error: BaseException) -> Facts:
    """The facts `element` and `sample`, by the frames of `scope`; {} for other errors."""
    refused = _REFUSED.match(str(error))
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if refused is None or trace is None:
        return {}
    given = trace.tb_frame.f_locals.get(f"{refused.group(1)}_lengths")
    if not values.is_tensor(given) or given.dtype.is_floating_point or not 0 < given.numel() <= _MOST:
        return {}
    flat, limit = given.detach().cpu().reshape(-1), int(refused.group(3))
    bad = flat > limit if refused.group(2) == "most" else flat < limit
    if not bool(bad.any()):
        return {}
    first = int(bad.nonzero()[0])
    facts: Facts = {
        "element": {
            "index": values.unravel(first, given.shape),
            "value": int(flat[first]),
            "bad": int(bad.sum()),
            "total": flat.numel(),
        }
    }
    at_most = refused.group(2) == "most"
    scan = {"first": first, "lo": -(1 << 62) if at_most else limit, "hi": limit + 1 if at_most else 1 << 62}
    scan.update(value=int(flat[first]), bad=int(bad.sum()), total=flat.numel(), also=None)
    sample = which.sample_of({"tensor": given, "scan": scan, "args": {}}, None, False, [])
    if sample is not None:
        facts["sample"] = sample
    return facts
