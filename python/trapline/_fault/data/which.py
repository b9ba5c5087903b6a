"""Which sample a bad element came from, by all ways there are."""

from __future__ import annotations

from typing import Any

from trapline._fault.data import (
    at_work,
    batches,
    blame,
    drawn,
    guesses,
    lengths,
    made_of,
    only,
    records,
    rows_of,
    samples,
    strings,
    values,
    weighted,
)
from trapline._fault.program import computed


def sample_of(
    violation: dict[str, Any], predicate: Any, position: bool, found: list[Any], before: int = 0
) -> Any:
    """The sample facts; leaves the batch tensor in `found` for the range over the data set. `position`: the
    elements are positions in a text, which `before` others stand before."""
    tensor, scan = violation["tensor"], violation["scan"]
    collated = samples.of_collated(tensor, scan)
    if collated is not None:
        return collated
    located = samples.locate(tensor, scan, predicate)
    if located is not None:
        found.append(located)
        sample = blame.blamed(samples.sample_facts(located), violation, predicate)
        return (rows_of.by_bag(violation) or sample) if sample and "one_of" in sample else sample
    position = position or guesses.counts_up(tensor, scan)
    unknown = violation.get("late") and batches.at_call() is None  # which batch was in hand at the call
    below = not tensor.dtype.is_floating_point and (scan.get("value") or 0) < (scan.get("lo") or 0)
    begun = guesses.by_operands(tensor, scan) if position and not unknown else None
    if begun is not None:  # places behind one that the record gives: `begin[:, None] + torch.arange(n)`
        return {**samples.sample_facts(begun), "by": "function"}
    if position and not unknown and not below:  # positions are nobody's: the text that is too long is
        bad = values.bad_mask(tensor.detach().reshape(-1), scan, predicate)
        making = samples.sample_facts(None)  # the data set's own code
        if making is not None:
            return making
        too_long = lengths.too_long(scan["hi"] - before, tensor, bad, before=before)
        at_hand = None if too_long else at_work.sample_facts([tensor], "")
        if at_hand and at_hand.get("of") == int(tensor.shape[-1]):
            at_hand = None  # as many places as samples: it may be numbers of these
        cut = None if too_long else rows_of.cut_by_hand(tensor, scan, predicate)
        return too_long or cut or rows_of.at_in_loop() or at_hand
    if position and below:  # nor are those that are computed wrongly
        return None if unknown else at_work.sample_facts([tensor], "")
    sample = guesses.sample_facts(violation, predicate) or records.sample_facts(violation)
    sample = sample or _of_operand(violation)
    if sample is None or "one_of" in sample:
        sample = rows_of.of_flat(violation, predicate) or sample
    return (
        blame.blamed(sample, violation, predicate)
        or _by_weight(violation)
        or guesses.batch_of_labels(violation, predicate)
        or (None if unknown else guesses.batch_in_hand(violation, predicate, found))
        or (_late(tensor, scan, unknown) if violation.get("late") else _at_least(violation, predicate))
    )


def _of_operand(violation: dict[str, Any]) -> Any:
    """The record whose numbers the program's arithmetic was given."""
    tensor, first = violation.get("given", violation["tensor"]), violation["scan"].get("first", -1)
    for operand in computed.operands_of("", tensor, first):
        scan = {**violation["scan"], "first": operand.first, "value": operand.value}
        found = records.sample_facts({**violation, "tensor": operand.tensor, "scan": scan})
        if found is not None:
            return {**found, "by": "function"}
    return None


def _by_weight(violation: dict[str, Any]) -> Any:
    """Of a weight below 0 the record is not to blame: the program has computed it."""
    scan, negative = violation["scan"], (violation["scan"].get("value") or 0) < 0
    wanted = violation.get("contract") == "multinomial.self" and not negative
    return weighted.sample_facts(violation["tensor"], scan) if wanted else None


def _late(tensor: Any, scan: dict[str, Any], unknown: bool) -> Any:
    if guesses.is_run(tensor):
        return None
    return only.sample_facts(tensor, scan) or (None if unknown else at_work.at_call(tensor))


def _at_least(violation: dict[str, Any], predicate: Any) -> Any:
    """No sample is known to be at fault: the row of a batch that the program made, or the batch in hand."""
    tensor, scan = violation["tensor"], violation["scan"]
    offsets = (violation.get("args") or {}).get("offsets")
    row = drawn.sample_facts(tensor, scan, predicate)
    if guesses.is_run(tensor) or (violation.get("no_grad") and values.is_newest(tensor, scan, predicate)):
        return row
    found = blame.blamed(strings.sample_facts(tensor, scan, offsets), violation, predicate)
    if row and found is None and set(row) == {"row"}:  # a batch of the program's, whose record may be known
        return rows_of.at_in_loop(scan, tensor) or row
    if row and (found is None or set(row) != {"row"} or row["row"] != found.get("row")):
        return row
    if found and "likely" in found and rows_of.only_bad_row(tensor, scan, predicate) == found.get("row"):
        found["by"] = "row"
    index = not str(violation.get("contract")).startswith(records.OF_DATA)
    found = found or only.sample_facts(tensor, scan, index)
    found = found or rows_of.of_records(tensor, scan, predicate)
    found = found or rows_of.cut_by_hand(tensor, scan, predicate) or rows_of.selected(tensor, scan, predicate)
    found = found or made_of.sample_facts(tensor, scan, predicate)
    return found or at_work.sample_facts([tensor], "", scan.get("value")) or rows_of.at_in_loop(scan, tensor)
