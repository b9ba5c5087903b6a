"""A fault at a place that was reported already: one true sentence with its own element and value, made fast.

A loop may raise and catch the same fault ten thousand times. No frame, layer, sample or source line is looked
at for it; the sentence is made when somebody reads it, and a call that is the same in all that it says gets
the same one.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

from trapline._fault import write
from trapline._fault.data import values
from trapline._fault.program import scope, sites
from trapline._library import current, forks
from trapline._library.say import debug_failure

_MAX = 256
_made: dict[Any, dict[str, Any]] = {}
forks.in_child(_made.clear)  # a child is another process

Finding = dict[str, Any]
Make = Callable[[dict[str, Any], list[str]], Finding]


class Pending:
    """A fault whose finding was not made yet. It keeps the call's tensors alive until it is forgotten.

    `make` makes a finding of facts; `whole` makes one of the violation, with all that can be found out.
    """

    __slots__ = ("made", "make", "site", "violation", "whole")

    def __init__(
        self, violation: dict[str, Any], site: Any, make: Make, whole: Callable[[dict[str, Any]], Finding]
    ) -> None:
        self.violation = dict(violation)  # a copy: the violation itself will hold the exception
        self.site = site
        self.make = make
        self.whole = whole
        self.made: Optional[Finding] = None

    def finding(self) -> Finding:
        """The finding, the same object each time."""
        if self.made is None:
            self.made = _finding_of(self.violation, self.site, self.make)
        return self.made

    def complete(self, exception: BaseException) -> Finding:
        """The whole finding, from the frames that the exception's traceback has kept."""
        finding: Finding = exception.finding  # type: ignore[attr-defined]
        try:
            with scope.frames_of(exception.__traceback__):
                finding = self.whole(self.violation)
            exception.finding = finding  # type: ignore[attr-defined]
        except Exception:
            debug_failure("complete")
        return finding

    def forget(self) -> None:
        """Lets go of the tensors: nobody can ask any more."""
        self.violation = {}


def _finding_of(violation: dict[str, Any], site: Any, make: Make) -> Finding:
    """The finding that `make` makes of the facts; `make` is asked once for calls that say the same."""
    try:
        key = _key(violation, site)
        known = _made.get(key)
    except TypeError:  # something in it has no hash
        key, known = None, None
    if known is None:
        known = make(_facts(violation, sites.origin_of(site)), [])
        if key is not None:
            if len(_made) >= _MAX:
                _made.clear()
            _made[key] = known
    return dict(known)  # each exception has one of its own


def _key(violation: dict[str, Any], site: Any) -> Any:
    arguments = violation.get("args") or {}
    return (
        site,
        violation["contract"],
        tuple(violation["scan"].values()),
        _mark(violation["tensor"]),
        violation.get("shape") and tuple(violation["shape"]),
        violation.get("dtype"),
        violation.get("device"),
        violation.get("late"),
        violation.get("contained"),
        violation.get("request"),
        tuple(arguments),
        tuple(map(_mark, arguments.values())),
    )


def _mark(value: Any) -> Any:
    if values.is_tensor(value):
        return value.shape, value.dtype, value.device
    if isinstance(value, (list, tuple)):
        return tuple(map(_mark, value))
    return type(value), value if isinstance(value, (bool, int, float, str)) else None


def _facts(violation: dict[str, Any], origin: Any) -> dict[str, Any]:
    scan = violation["scan"]
    tensor = violation["tensor"]
    names = ("shape", "dtype", "device")
    described = (
        values.describe(tensor) if tensor is not None else {name: violation.get(name) for name in names}
    )
    facts: dict[str, Any] = {
        "kind": "violation",
        "contract": violation["contract"],
        "device": str(described.get("device") or "cpu").split(":")[0],
        "scan": values.scan_facts(scan, values.repeats(violation.get("tensor"))),
        "tensor": described,
        "args": values.describe_args(violation.get("args") or {}),
    }
    if scan.get("first", -1) >= 0 and described.get("shape") is not None:
        facts["index"] = values.unravel(scan["first"], described["shape"])
    if violation.get("late"):
        facts["contained"] = bool(violation.get("contained"))
    facts["process"] = write.process_facts(str(described.get("device") or "cpu"))
    if origin is not None:
        facts["origin"] = origin
    current.name_in(facts, violation.get("request"))
    return facts
