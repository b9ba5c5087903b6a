"""A loss that was made outside of modules: the program's statements that made it run again.

What runs again, and what of it is left out: :mod:`trapline._fault.replay`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Callable, NamedTuple, Optional, Union

import torch

from trapline._fault.data import batches, hand, rows_of
from trapline._fault.data.without import Without
from trapline._fault.program import arisen, frames, holders, owners
from trapline._fault.replay.rewrite import CannotRun
from trapline._fault.replay.session import Session
from trapline._fault.replay.slices import Slices
from trapline._library.say import debug
from trapline._watch import backward
from trapline._watch.again import (
    Call,
    Kept,
    autocast_of,
    draw_again,
    has_collectives,
    inner_of,
    is_lazy,
    is_plain,
    weights_of,
)
from trapline._watch.flow import Flow, tensors
from trapline._watch.forward import given_to, knows_weights, named, part_of
from trapline._watch.rows import sample_of

_SECONDS = 4.0  # for all rows
_MAX_ROWS = 256
_NAMES = {"_softmax": "softmax", "_log_softmax": "logsoftmax"}  # as users call them
_MAX_WEIGHTS = 1 << 27  # of all models, where no training says how long a step takes
_MAX_HELD = 4  # variables whose statements run again
_MAX_LAST = 12  # operations behind a loss: a division, a scale


class _How(NamedTuple):
    """`trained`: with gradients. `leaves`: what was made of something that has one is made again, too, as a
    derivative may be asked for (`autograd.grad(energy.sum(), positions)`)."""

    trained: bool
    leaves: bool = False


_LEAVES = _How(True, True)
_HOWS = (_How(False), _How(True), _LEAVES)


class _Ran(NamedTuple):
    value: Any
    flow: Flow
    drew: dict[int, Any]
    by_chance: bool = False  # with other random numbers it was finite


class Loss(NamedTuple):
    """What `backward` was called of. Variables of the program hold it, or what it is a share of; or, where
    none does, `by_line` the call says what it is: `(loss + penalty).backward()`."""

    tensor: Any
    by_line: bool = False

    def is_it(self, value: Any) -> bool:
        return value is self.tensor

    def is_share(self, value: Any) -> bool:
        """What it was made of by a division or a scale."""
        if not isinstance(value, torch.Tensor) or value.numel() != 1 or value.grad_fn is None:
            return False
        return any(node is value.grad_fn for node in self._above())

    def _above(self) -> Iterator[Any]:
        """The last operations, as long as each has but one that it was given numbers by."""
        node = self.tensor.grad_fn
        for _ in range(_MAX_LAST):
            yield node
            before = [one for one, _ in getattr(node, "next_functions", ()) if one is not None]
            if len(before) != 1:
                return
            node = before[0]


class Held(NamedTuple):
    """Numbers that variables of the program hold, perhaps in another shape, or that the line that runs gives
    a function of that name first."""

    tensor: Any
    function: str = ""

    def is_it(self, value: Any) -> bool:
        if value is self.tensor:
            return True
        same = isinstance(value, torch.Tensor) and value.numel() == self.tensor.numel() > 0
        return same and value.data_ptr() == self.tensor.data_ptr()

    def is_share(self, value: Any) -> bool:
        del value
        return False


Wanted = Union[Loss, Held]


def of_value(held: Held, calls: list[Call]) -> dict[str, Any]:
    """Facts of the operation that made a value in host memory not finite: `op`, `origin`, and `finite`, of
    finite numbers, or of a mask's infinities; {} where that cannot be seen."""
    if not is_plain(held.tensor) or not held.tensor.is_cpu or _are_large():
        return {}
    ran, _ = _either(lambda how: _made(held, calls, how))
    if ran is None:
        return {}
    made, by_chance = ran
    first = made.infinite or made
    facts = named(first, _root_of(first.module, calls))
    op = _NAMES.get(facts["op"], facts["op"])
    if by_chance or not (first.finite or op in _NAMES.values()):
        return {}
    origin = {name: value for name, value in facts.items() if name == "origin"}
    return {"op": op, "finite": first.finite, **origin, **part_of(first)}


def of_written(calls: list[Call]) -> dict[str, Any]:
    """Facts of gradients that the program has written itself, without `backward`: the operation that made
    them not finite, by the variables that hold such numbers; its line alone, where they do not run again."""
    facts: dict[str, Any] = {"kind": "gradient", "given": True, "by_hand": True, "looked": True}
    held = [
        value
        for frame in holders.user_frames()
        for value in frame.f_locals.values()
        if isinstance(value, (torch.Tensor, list, tuple, dict)) and _is_bad(value)
    ]
    for value in held[:_MAX_HELD]:
        ran, _ = _either(lambda how, value=value: _made(Held(value), calls, how))  # type: ignore[misc]
        if ran is not None:
            made, by_chance = ran
            first = made.infinite or made
            root = _root_of(first.module, calls)
            made_by = {**named(first, root), **({} if by_chance else given_to(made, root))}
            return {**made_by, **facts, "op": _NAMES.get(made_by["op"], made_by["op"])}
    beside = arisen.beside()
    return {**facts, **{key: beside[key] for key in ("op", "origin") if key in beside}}


def _are_large() -> bool:
    """Models that would take long to run again, while somebody waits for a report."""
    elements = sum(p.numel() for _, root in owners.roots() for p in root.parameters() if not is_lazy(p))
    return elements > _MAX_WEIGHTS


def of_loss(loss: Any, calls: list[Call], by_line: bool = False) -> dict[str, Any]:
    """Facts of the operation that made the loss not finite; {} where that cannot be seen."""
    last = Loss(loss, by_line)
    ran, how = _either(lambda how: _made(last, calls, how))
    if ran is None:
        return {}
    made, by_chance = ran
    first = made.infinite or made
    root = _root_of(first.module, calls)
    facts = {**named(first, root), **part_of(first), **given_to(made, root)}
    if first is not made:
        before = {key: facts[key] for key in ("op", "type", "name", "derived") if key in facts}
        facts["inf_before"] = {"kind": "output" if first.module is not None else "loss", **before}
        facts |= {key: value for key, value in named(made, root).items() if key != "origin"}
    facts |= {"kind": "loss", "op": _NAMES.get(facts["op"], facts["op"])}
    if "origin" in facts and not _runs(facts["origin"]):
        facts["leads"] = True
        if facts.get("inf_before", {}).get("kind") == "loss":
            facts["inf_before"]["leads"] = True
    if by_chance:  # whoever's row it is
        facts.pop("sample", None)
        facts["drawn"] = True
    elif "sample" not in facts:
        facts |= only_sample(
            lambda without: not _is_bad(_run(last, calls, how, without).value),
            first.learned,
        )
        facts |= {} if "sample" in facts or batches.given_out() else _record(first, last, calls, how)
    return facts


def _runs(origin: dict[str, Any]) -> bool:
    """The function of that line is running, as the one that has the loss is."""
    live = (frames.make_frame((frame.f_code, frame.f_lasti)) for frame in holders.user_frames())
    return any((one["file"], one["function"]) == (origin["file"], origin["function"]) for one in live if one)


def _record(first: Any, last: Loss, calls: list[Call], how: _How) -> dict[str, Any]:
    """In a program without a DataLoader, the record that its own function was given, without which all would
    have been finite."""
    entry = rows_of.entry_given(first.given_to)
    if entry is None:
        return {}
    try:
        left = _run(last, calls, how, Without(entry.count, entry.place)).value
    except Exception as error:  # it does not work with fewer of them
        debug(f"watch: not without a record: {error!r}")
        return {}
    return {} if _is_bad(left) else {"sample": entry.sample}


def of_gradients(loss: Any, calls: list[Call]) -> dict[str, Any]:
    """Facts of the operation of the loss whose derivative was not finite: `op`, `origin`, `sample`."""
    last = Loss(loss)
    culprit, _ = _either(lambda how: _culprit(last, calls) if how == _LEAVES else None)
    if culprit is None or culprit.node is None:
        debug("watch: no derivative of what ran again is to blame")
        return {}
    frame, _ = culprit.line()
    if frame is None:
        return {}
    learned = culprit.is_learned()
    inside = backward.inside(culprit, [inner_of(call) for call in calls if call.module() is not None])
    facts = {
        "op": culprit.op(),
        "origin": frame,
        "backward": inside,
        **culprit.sample(weights_of(calls)),
    }
    if "sample" not in facts:

        def cures(without: Without) -> bool:
            left = _culprit(last, calls, without)
            return left is not None and left.is_fine()

        facts |= only_sample(cures, learned)
    return facts


def _either(look: Callable[[_How], Any]) -> tuple[Any, _How]:
    """Without gradients, then with them: it may ask for some itself (a penalty)."""
    for how in _HOWS:
        try:
            made = look(how)
            if made is not None:
                return made, how
        except RuntimeError as error:
            debug(f"watch: does not run again: {error!r}")
        except Exception as error:
            debug(f"watch: does not run again: {error!r}")
            break
    debug("watch: it runs again, and nothing of it makes such numbers")
    return None, _HOWS[0]


def _made(last: Wanted, calls: list[Call], how: _How) -> Any:
    """What made it, and whether chance decided that."""
    ran = _run(last, calls, how)
    if not _is_bad(ran.value):
        raise CannotRun("it is finite then")
    made = ran.flow.origin_of(ran.value)
    return None if made is None or made.given is not None else (made, ran.by_chance)


def _culprit(last: Wanted, calls: list[Call], without: Optional[Without] = None) -> Any:
    with backward.anomaly(), backward.Intervals() as intervals:
        value = _run(last, calls, _LEAVES, without, follows=False).value
        loss = next((one for one in tensors([value], trained=True) if one.requires_grad), None)
        if loss is None or loss.numel() != 1 or _is_bad(loss):
            return None
        culprit = backward.run(loss)
        if culprit is not None:
            culprit.intervals = intervals
        return culprit


def _run(
    last: Wanted,
    calls: list[Call],
    how: _How,
    without: Optional[Without] = None,
    follows: bool = True,
) -> _Ran:
    """With the numbers that the program drew, where they can be drawn again."""
    ran = _run_once(last, calls, how, without, follows)
    if ran.drew and without is None:
        again = _run_once(last, calls, how, without, follows, ran.drew)
        if not follows or _is_bad(again.value):
            return again._replace(by_chance=not _is_bad(ran.value))
    return ran


def _run_once(
    last: Wanted,
    calls: list[Call],
    how: _How,
    without: Optional[Without],
    follows: bool,
    drew: Optional[dict[int, Any]] = None,
) -> _Ran:
    flow = Flow()

    def enter(module: Any, stack: ExitStack) -> Any:
        mine = [call for call in calls if module in (call.module(), inner_of(call))]
        if any(map(has_collectives, mine)):
            raise CannotRun("collectives")
        stack.enter_context(Kept(module, refuses=True))
        knows_weights(flow, module)
        return _Again(inner_of(mine[0]) if mine else module, iter(mine))

    session = Session(enter, flow.learned, without, how.trained, drew)
    slices = Slices(
        session,
        _is_leaf if how.leaves else _is_good,
        lambda name, value: flow.names(list(tensors(value)), ("input", name)),
    )
    with session.running(flow if follows else None):
        try:
            value = slices.value_of(last.is_it, last.is_share)
        except CannotRun:
            if type(last) is Loss and last.by_line:
                value = slices.receiver_of("backward")
            elif type(last) is Held and last.function:
                value = slices.argument_of(last.function)
            else:
                raise
    return _Ran(value, flow, session.drew)


class _Again:
    """A module that is called again, as it was called in this step."""

    def __init__(self, module: Any, calls: Iterator[Call]) -> None:
        self._module, self._calls = module, calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = next(self._calls, None)
        if call is None:
            return self._module(*args, **kwargs)
        draw_again(call)
        with autocast_of(call):
            return self._module(*args, **kwargs)


def _is_good(value: Any) -> bool:
    if type(value) is float:
        return value - value == 0
    return all(bool(tensor.isfinite().all()) for tensor in tensors(value))


def _is_leaf(value: Any) -> bool:
    """What no operation made whose derivative counts."""
    return _is_good(value) and all(one.grad_fn is None for one in tensors([value], trained=True))


def _is_bad(value: Any) -> bool:
    return not _is_good(value)


def _root_of(module: Any, calls: Iterable[Call]) -> Any:
    for call in calls:
        inner = inner_of(call)
        if module is not None and inner is not None and any(part is module for part in inner.modules()):
            return inner
    return torch.nn.Module()


def only_sample(cures: Callable[[Without], bool], learned: bool) -> dict[str, Any]:
    """The only sample without which all would have been finite."""
    batch = hand.in_hand() or next(iter(batches.newest_first()), None)
    count = len(batch.indices) if batch is not None and isinstance(batch.indices, (list, tuple)) else 0
    if batch is None or not 2 < count <= _MAX_ROWS:
        return {}
    left = sorted((Without.of(batch, count, row) for row in range(count)), key=lambda one: -one.long)
    cured: list[Without] = []
    ends = time.monotonic() + _SECONDS
    try:
        for one in left:
            if time.monotonic() > ends and not one.long:
                debug("watch: no time for every row")
                cured = [known for known in cured if known.long]
                break
            if cures(one):
                cured.append(one)
    except Exception as error:  # it does not work with fewer rows
        debug(f"watch: not without a row: {error!r}")
        return {}
    if len(cured) != 1:
        return {}
    row = cured[0].row
    learned = learned and not cured[0].long  # its length alone has done it
    # A list of a tensor for each sample has no tensor with a row for each.
    bad = torch.arange(count) == row
    return sample_of(bad, learned=learned) or {"sample": rows_of.of_row(batch, row)}
