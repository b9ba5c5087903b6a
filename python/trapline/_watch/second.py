"""Stage two: where a number that is not finite was made, and the suspect that comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, Optional

from trapline._fault.data import cut
from trapline._fault.program import warned
from trapline._library.say import debug
from trapline._watch import candidates, place, sampled_again, weights
from trapline._watch.flow import tensors
from trapline._watch.suspect import Suspect, parameters_of

_MAX_PLACES = 3  # times that it is tried: a program may leave out bad steps for ever
_OF_DATA = ("input", "target")
_MAX_RETURNED = 8  # times that are not counted, as nothing came of it


class Second:
    def __init__(self, light: Any) -> None:
        self._light = light
        self._returned = 0
        self.places = 0  # times that it ran
        self.is_running = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """What it runs is none of the program's."""
        self.is_running, self._light.notes = True, False
        # The newest call first: one of an evaluation may have been before it.
        calls = reversed(self._light.calls)
        given = [one for call in calls for one in tensors([call.args, call.kwargs])]
        try:
            with cut.standing_in(given):
                yield
        finally:
            self.is_running, self._light.notes = False, True

    def returns(self) -> None:
        """It came to nothing: what comes later may still be looked for."""
        if self._returned < _MAX_RETURNED:
            self._returned += self.gives_back()

    def gives_back(self) -> bool:
        """It may run once more."""
        had = self.places > 0
        self.places -= had
        return had

    def suspects(
        self,
        look: Callable[[], dict[str, Any]],
        what: str,
        kind: str,
        reached: dict[int, Any],
        known: Optional[weights.Known] = None,
    ) -> None:
        """`look`: gives the facts of the place. `reached`: the parameters that the number depends on."""
        light = self._light
        found: dict[str, Any] = {"kind": kind, "looked": False}
        if self.places < _MAX_PLACES:
            self.places += 1
            try:
                with self.running():
                    found = look()
                    whose = found.get("sample") or {}
                    if found["kind"] in _OF_DATA and "dataset_index" in whose and "origin" not in found:
                        found |= sampled_again.made()
            except Exception as error:
                debug(f"watch: {error!r}")
        at = light.steps.at(light.backwards)
        changed = light.steps.taken or (at["unit"] != "step" and light.backwards > 1)
        if changed and known is not None and found["kind"] == "loss" and not found.get("looked", True):
            # Weights that were good and are not tell of an update, also where nothing ran again.
            found |= weights.of_broken(reached, known)
        out = {"what": what, **at, **found}
        if "inf_before" in found:
            out["inf_before"] = {**found["inf_before"], **at}
        if _may_be_numpys(out) and "fetched" not in out:
            places = warned.of_not_finite(only_inf=out["what"] == "inf")
            out |= {"warned": places} if places else {}
        out |= light.ring.told(at["step"], light.loss, light.norm)
        if found["kind"] == "optimizer":
            out["step"] = light.steps.taken if at["unit"] == "step" else at["step"] - 1
            if len(light.steps.tallies) == 1 and light.ring.norm_was_finite():
                out["gradients_finite"] = True
            elif out["step"] == light.updates.spoilt:
                out |= {"by_gradients": True, **place.half_of(reached.values())}
        candidates.doubt(out)
        if kind == "gradient":
            modules = [module for call in light.calls if (module := call.module()) is not None]
            out |= weights.infinite(reached.values(), modules)
        light.suspect = Suspect(out, what == "nan", [*self.parameters(), *reached.values()], reached)

    def parameters(self) -> Iterator[Any]:
        """Of the optimizers, and of the modules that were called in this step."""
        for optimizer in list(self._light.steps.tallies):
            yield from parameters_of(optimizer)
        for call in self._light.calls:
            module = call.module()
            if module is not None:
                yield from module.parameters()


def _may_be_numpys(found: dict[str, Any]) -> bool:
    """The numbers came to the modules and to the loss from without, or may have."""
    if found["kind"] in ("input", "target") or "written" in found or "given" in found:
        return True
    return found["kind"] == "loss" and "origin" not in found and ("op" not in found or "factor" in found)
