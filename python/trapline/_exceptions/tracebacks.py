"""The traceback of an exception that ends the program, without the frames of the tool itself."""

from __future__ import annotations

from typing import Optional

from trapline._fault import life
from trapline._fault.program import places
from trapline._library.say import debug_failure

_MAX_FRAMES = 4096


def without_ours(error: Optional[BaseException]) -> None:
    """Takes out what stands between two frames of others: the user's calls, as they stand in the text. Never
    raises."""
    try:
        for one in life.whole_chain(error) if error is not None else ():
            trace = one.__traceback__
            for _ in range(_MAX_FRAMES):
                following = trace.tb_next if trace is not None else None
                if trace is None or following is None:
                    break
                if following.tb_next is not None and places.is_own(following.tb_frame.f_code.co_filename):
                    trace.tb_next = following.tb_next
                else:
                    trace = following
    except Exception:
        debug_failure("traceback")
