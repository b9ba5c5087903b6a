"""Whether an optimizer's step would be taken with numbers that are not finite: `--on-fault skip` asks.

Asked right before each step. While steps are counted in C, the loss and the gradient that is looked at were
fine; else the look before the step is taken here. What the program mends, or leaves out itself, is none.
"""

from __future__ import annotations

import math
import time
from typing import Any, Optional

from trapline._fault import life, write
from trapline._fault.data import batches, rows, samples
from trapline._library import diagnose
from trapline._library.errors import DeviceAssertError
from trapline._library.say import debug
from trapline._watch import spoilt
from trapline._watch.buffers import Buffers
from trapline._watch.hot import holds_finite
from trapline._watch.suspect import Suspect, are_finite, are_mended, modes, parameters_of

_MAX_WRITTEN = 8  # findings: the later ones are counted
_MAX_BATCHES = 64  # that are known to be bad

Rows = tuple[Any, list[dict[str, Any]]]  # a data set, and its samples that are not finite


class Holding:
    def __init__(self, light: Any) -> None:
        self._light = light
        self.is_asked = False  # by somebody, in this run
        self.told = self.written = 0
        self.buffers = Buffers()
        self._last: Optional[DeviceAssertError] = None
        self._dead: list[Any] = []  # weak references to weights that it has told to be bad
        self._bad_batches: list[int] = []  # their serial numbers

    def suspect_of(self, optimizer: Any, in_closure: bool) -> Optional[Suspect]:
        """What its step would be taken with; None: nothing that is not finite."""
        light = self._light
        if light.is_compiling() or light.hot.armed:
            return None
        light.asked = None
        if not light.notes or light.device.is_used or modes():
            return None
        try:
            if not light.looks and light.suspect is None and not holds_finite(optimizer):
                light.looks = True
            light.looks_before(optimizer)
            if not in_closure:  # there the hook was called before the loss was made
                light.asked = optimizer
            suspect = light.suspect
            if suspect is not None and suspect.spoils(parameters_of(optimizer)):
                return suspect
            if suspect is None and light.looks and light.norm is not None and math.isfinite(light.norm):
                began = time.perf_counter()
                self.buffers.keep()
                light.budget.spends(began)
            return None
        except Exception as error:
            debug(f"watch: {error!r}")
            return None

    def is_harmed(self, suspect: Suspect) -> bool:
        """By the rule for a finding, after the step was taken. It is not found: the step will be undone."""
        if self._light.found is not suspect.fact:
            return False
        self._light.found, self._light.harmed = None, []
        return True

    def left_out(self, optimizer: Any) -> None:
        """Its step was not taken, whatever the reason."""
        light = self._light
        if light.is_compiling() or modes():
            return
        self.buffers.put_back()
        light.catches_up()
        light.asked, light.stepping = None, False
        light.slopes.take_between()
        if light.suspect is not None:
            light.suspect = None
            light.second.returns()
        light.counts_step(optimizer)

    def error_of(self, suspect: Suspect, optimizer: Any, taken: bool) -> DeviceAssertError:
        """The fault whose step is left out, kept as a finding. `taken`: on trial."""
        self._light.suspect = None
        if self._last is not None and self._dead and not are_mended(self._dead):
            return self._last  # no step can be taken any more
        steps = self._light.steps
        fact = suspect.numbered(steps.taken if taken else steps.next_of(optimizer))
        if self.told:
            fact["later"] = True
        self.told += 1
        self._light.second.gives_back()  # as many as the limit of skips allows
        facts = {"kind": "watch", "watch": fact, "process": write.process_facts()}
        finding = diagnose.diagnose(facts) or {}
        self._last, self._dead = DeviceAssertError(str(finding.get("summary", "")), finding), suspect.dead()
        if self.told <= _MAX_WRITTEN:
            file = write.write_finding(finding, [])
            self.written += file is not None
            life.reported(finding, file)
        return self._last

    def forgets(self) -> None:
        """After a fork."""
        self.told = self.written = 0
        self._last, self._dead = None, []

    def rows_of(self, suspect: Suspect) -> Rows:
        """The samples to leave out from now on."""
        sample = suspect.fact.get("sample") or {}
        located = spoilt.spoiled() if suspect.fact["kind"] in ("input", "target") else None
        if located is None or "dataset_index" not in sample:
            return None, []
        if samples.sample_facts_of(located).get("dataset_index") != sample["dataset_index"]:
            return None, []
        batch = located.batch
        self._bad_batches = [*self._bad_batches[1 - _MAX_BATCHES :], batch.serial]
        return (None, []) if self._is_usual(located) else rows.not_finite(located)

    def _is_usual(self, located: Any) -> bool:
        """Batches before it held such numbers, too, and did no harm: which of them did is not known."""
        batch = located.batch
        at = next(i for i, tensor in enumerate(batch.tensors()) if tensor is located.tensor)
        for other in batches.newest_first():
            if other.loader is not batch.loader or other.serial >= batch.serial:
                continue
            if other.serial not in self._bad_batches and not are_finite(other.tensors()[at : at + 1]):
                return True
        return False
