"""What the content of the offending tensor tells, and what is in reach of it."""

from __future__ import annotations

from typing import Any, Callable, Optional

from trapline._fault.data import (
    at_work,
    calendars,
    casts,
    collated,
    counts,
    dimensions,
    ends,
    entries,
    fits,
    hand,
    masked,
    ranged,
    recorded,
    rows_of,
    sampled,
    samplers,
    seen,
    spread,
    values,
    variables,
    which,
)
from trapline._fault.model import models, namesakes, nans, positions, squashed, tables
from trapline._fault.program import (
    arisen,
    codes,
    computed,
    creations,
    filled,
    floored,
    given,
    indexed,
    libraries,
    loss_labels,
    marks,
    owners,
    scope,
    sourced,
    stale,
    taken_off,
    texts,
)

# What the text of a program has that reads masks, in lower case.
_RESIZES = (
    *("resize", "interpolate", "rotat", "affine", "warp", "zoom", "grid_sample", "perspective"),
    *("elastic", "thumbnail", "rescale", "pyrdown", "remap"),
)
_GREYS = ('convert("l")', "convert('l')", "grayscale", "greyscale", "rgb2gray", "cvtcolor", "as_gray")
_INDEXED = ("gather", "index", "take_along_dim")
_WRITTEN = ("scatter", "index_put", "_index_put", "_unsafe_index_put", "index")


def _indexes(operator: str) -> bool:
    return operator.startswith((*_INDEXED, *_WRITTEN))


def _called_itself(function: str, instead: str) -> Optional[bool]:
    """PyTorch's function of this name runs, and not the one that calls the same operation."""
    names = {
        frame.f_code.co_name
        for frame in scope.live_frames()
        if frame.f_globals.get("__name__") == "torch.nn.functional"
    }
    return True if function in names and instead not in names else None


def _divided(variable: dict[str, Any], tensor: Any) -> Optional[dict[str, Any]]:
    """The division that weights which are not finite were made by last."""
    found = computed.computed_facts(str(variable.get("name", "")), tensor)
    return found if found is not None and " / " in found.get("text", "") else None


def _is_rows_input(facts: dict[str, Any]) -> bool:
    """What the model was given is not finite in the row of the sample: of a batch on a device, whose own
    tensors are gone."""
    given, row = (facts.get("nan") or {}).get("input") or {}, (facts.get("sample") or {}).get("row")
    return row is not None and given.get("index", [])[:1] == [row]


def _is_models(variable: dict[str, Any]) -> bool:
    """What a module keeps (`self.neighbours`) or has made when it was made is of no batch."""
    name = str(variable.get("name", ""))
    holders = (
        [frame.f_locals.get("self") for frame in scope.live_frames()] if name.startswith("self.") else []
    )
    member = name[len("self.") :].partition("[")[0]
    held = next((scope.members(one) for one in holders if owners.is_module(one)), {})
    return member in (held.get("_buffers") or {}) or member in (held.get("_parameters") or {})


def _all_alike(content: Any, scan: dict[str, Any]) -> bool:
    """Every element is bad, and all are the same."""
    total = int(content.numel())
    return total > 1 and scan.get("bad") == total and bool((content == content.reshape(-1)[0]).all())


def _is_cast(facts: dict[str, Any], scan: dict[str, Any]) -> bool:
    """The value is what a cast makes of NaN."""
    return "nan_cast" in facts or "numpy_cast" in facts or scan.get("value") in casts.OF_NAN


Add = Callable[[str, Callable[[], Any]], None]


def look_into(
    tensor: Any, violation: dict[str, Any], predicate: Any, facts: dict[str, Any], add: Add
) -> None:
    """What the content of the offending tensor tells. One copy of it serves all that follows."""
    scan, repeats = violation["scan"], values.repeats(tensor)
    content = tensor if tensor.device.type == "cpu" else tensor.detach().cpu()
    arguments = (violation.get("args") or {}).items()
    violation = dict(
        violation,
        tensor=content,
        given=tensor,  # as the program's variables hold it
        args={name: content if value is tensor else value for name, value in arguments},
    )
    add("values", lambda: [list(pair) for pair in values.bad_values(content, scan, predicate, repeats)])
    add("strip", lambda: spread.strip(content, scan, predicate))
    add("histogram", lambda: spread.histogram(content, scan, predicate))
    add("in_column", lambda: values.in_column(content, scan, predicate))
    operator = str(violation.get("op") or "").replace("aten::", "")
    rows = (violation.get("args") or {}).get("weight")
    if operator.startswith(("embedding", "_embedding_bag")):
        name = (facts.get("layer") or {}).get("name", "")
        role = models.role(rows) if scope.is_tensor(rows) else None
        add("table", lambda: tables.table_kind(name, content, role))
        if role == "input":
            add("resizable", lambda: models.resizable(rows))
        if role == "input" or (role is None and facts.get("table") in (None, "token")):
            add("special_ids", tables.special_ids)  # they are ids of tokens, not of other tables
        if role is None and texts.speak_of("embedding.from_pretrained"):
            facts["pretrained"] = True
        if role == "other":
            add("setting", lambda: models.table_setting(rows, name, scan.get("max")))
    elif operator in ("gather", "index"):
        add("table", lambda: "position" if tables.is_positions(tensor) else None)
    if facts.get("table") in ("position", "token"):
        facts["tokenizes"] = texts.speak_of("tokenizer")
    if facts.get("table") == "position":
        add("position", lambda: positions.position_facts(scope.live_frames(), scan.get("hi"), rows))
        add("generation", positions.generation_facts)
        add("counts_from", lambda: positions.counts_from(content, scan.get("first", -1)))
        add("text", positions.is_text)
        add("sequence", lambda: positions.sequence_name(int(tensor.shape[-1])) if tensor.dim() else None)
        add("virtual_tokens", models.virtual_tokens)
        add("padded_to", hand.padded_to)
        add("ranged", lambda: ranged.ranged_facts(tensor))
        add("kept", lambda: positions.kept(tensor, int(scan.get("value", 0))))
        add("grows", lambda: positions.grows(list(tensor.shape), recorded.history()) or None)
    called = [code for code, _ in violation.get("frames") or ()] if violation.get("late") else None
    add("library", lambda: libraries.library_facts(facts.get("layer"), called))
    if operator.startswith("one_hot"):
        add("made", lambda: creations.classes_of_call("one_hot", "num_classes", 1))
    else:
        add("made", lambda: creations.made(facts.get("layer"), facts.get("library") or {}))
    if "counted" not in facts and operator.startswith("embedding"):
        add("counted", lambda: counts.named_in(facts.get("made")))
    if "together" in (facts.get("layer") or {}):
        facts["layer"]["name"] = facts["layer"].pop("together")
    if operator.startswith("nll_loss"):
        add("trained", lambda: seen.trained(violation))
        add("as_nll", lambda: _called_itself("nll_loss", "cross_entropy"))
    if operator.startswith("nll_loss2d") or (operator.startswith("one_hot") and tensor.dim() > 2):
        facts["resizes"] = texts.speak_of(*_RESIZES)
        facts["greys"] = texts.speak_of(*_GREYS)
    if operator.startswith(("nll_loss", "one_hot", "embedding")):
        add("calendar", lambda: calendars.calendar_facts(scan))
        add("end", lambda: ends.end_facts(scan, facts.get("made")))
    if operator.startswith("multinomial"):
        facts["scores"] = texts.speak_of("logit", "softmax", "generate(")
        add("sampler", lambda: samplers.sampler_facts(content, scan))
    if violation.get("contract") == "binary_cross_entropy.self":
        add("squashed", lambda: squashed.squashed_by(tensor))
        add("passed", lambda: seen.passed(violation))
    signed = operator.startswith("nll_loss") and scan.get("hi") == 2 and scan.get("value") == -1
    if signed or violation.get("contract") == "binary_cross_entropy.target":
        add("kinds", lambda: values.kinds(content))
    if violation.get("contract") == "binary_cross_entropy.target":
        scores = (violation.get("args") or {}).get("self")
        if tensor.requires_grad and scope.is_tensor(scores) and not scores.requires_grad:
            facts["exchanged"] = True
    add("masked", lambda: masked.masked_by(tensor, scan, predicate))
    add("nan_cast", lambda: casts.nan_cast_facts(tensor, scan))
    if "nan_cast" not in facts:
        add("numpy_cast", lambda: casts.numpy_cast_facts(scan))
    if _is_cast(facts, scan):
        facts["pandas"] = texts.speak_of("pandas")
        add("batch_is_finite", lambda: hand.is_finite(late=bool(violation.get("late"))))
    if nans.is_not_finite(scan):
        add("weights", lambda: models.bad_weights(reachable=bool(violation.get("contained"))))
        add("nan", lambda: nans.nan_facts(violation, tensor, facts.get("weights")))
        if operator.startswith("multinomial"):
            add("variable", lambda: variables.variable_facts(violation, tensor, predicate))
            add("computed", lambda: _divided(facts.get("variable") or {}, tensor))
    elif (operator.startswith(_INDEXED) and _all_alike(content, scan)) or _is_cast(facts, scan):
        # A search among numbers that are NaN, or their cast: the model may have made them of broken weights.
        weights = models.bad_weights(reachable=bool(violation.get("contained")))
        if (weights or {}).get("bad"):
            add("weights", lambda: weights)
            add("nan", lambda: nans.nan_facts(violation, tensor, facts.get("weights")))
    if not content.is_floating_point():
        add("raised", lambda: collated.raised_facts(content, scan))
    found: list[Any] = []
    position = facts.get("table") == "position"
    # What a loop computed is no sample's, nor are offsets or what broken weights made; and a mask with too
    # many elements set has no first one.
    weights = facts.get("weights") or {}
    nobodys = (
        facts.get("grows")
        or weights.get("bad")
        or weights.get("grown")
        or str(violation.get("contract")).endswith((".offsets", "masked_scatter.mask"))
    )
    if violation.get("contract") == "masked_scatter.mask":
        add("sample", lambda: rows_of.odd_one(content))
    if str(violation.get("contract")).endswith(".offsets"):
        add("sample", lambda: at_work.sample_facts([tensor], ""))
    before = facts.get("virtual_tokens") or 0
    add(
        "sample",
        lambda: None if nobodys else which.sample_of(violation, predicate, position, found, before),
    )
    add("seen", lambda: seen.seen_facts(violation, found[0] if found else None, facts.get("sample")))
    if found and _indexes(operator) and "table" not in facts:
        source = (violation.get("args") or {}).get("self")
        square = scope.is_tensor(source) and list(source.shape).count(scan.get("hi")) > 1
        real = found[0].tensor.dtype.is_floating_point  # measured, and no label
        labels = not (square or real) and loss_labels.are_labels(
            tensor, found[0].tensor, source
        )  # places of each other
        add("table", lambda: "labels" if labels else None)
    if operator.startswith(("nll_loss", "multi_margin_loss", "one_hot")) or facts.get("table") == "labels":
        add("counted", lambda: counts.classes(found[0] if found else None))
    elif facts.get("table") == "token":
        add("counted", lambda: counts.tokens(tensor, scan.get("hi")))
    if operator.startswith(_INDEXED):
        add("fits", lambda: fits.fits_facts(violation))
        add("other_dimension", lambda: dimensions.other_dimension(violation))
        add("cut_from", lambda: dimensions.cut_from(violation))
        add("selected", lambda: dimensions.is_selected(violation) or None)
        add("exchanged_index", lambda: dimensions.are_exchanged(violation) or None)
    if not nans.is_not_finite(scan):
        if not (facts.get("weights") or {}).get("bad"):
            add("nan", lambda: nans.cast_facts(violation, predicate, "nan_cast" in facts))
        add("variable", lambda: variables.variable_facts(violation, tensor, predicate))
        in_library = operator.startswith(_INDEXED) and "caller" in (facts.get("library") or {})
        if in_library and not {"nan", "variable"} & set(facts):
            add("nan", lambda: nans.library_facts(violation, predicate))
        add("narrow", lambda: casts.narrow_facts(scan))
        name = str((facts.get("variable") or {}).get("name", ""))
        add("namesake", lambda: namesakes.namesake(facts.get("layer"), name, scan.get("max")))
        highest = (facts.get("seen") or {}).get("max", scan.get("max"))
        if 2 * scan.get("bad", 0) >= scan.get("total", 0):
            other = namesakes.other_head if operator.startswith("nll_loss") else namesakes.other_table
            add("other_head", lambda: other(facts.get("layer"), highest))
        if operator.startswith("nll_loss") and variables.is_as_long(name, scan.get("hi")):
            facts["as_long"] = True
        if operator.startswith("nll_loss") and "layer" not in facts:
            add("ids_as_long", lambda: variables.ids_as_long(tensor, scan.get("hi")))
        if operator.startswith("nll_loss") and "counted" not in facts:
            at = facts.get("variable")
            add("counted", lambda: namesakes.tied(facts.get("layer"), at, scan.get("max")))
    equal = bool(found) and (facts.get("sample") or {}).get("by") != "value"  # else a guess
    if not position and not content.is_floating_point() and not (equal and found[0].found.constant == 0):
        name = str((facts.get("variable") or {}).get("name", ""))
        add("computed", lambda: computed.computed_facts(name, tensor, scan.get("first", -1)))
        if "computed" not in facts:
            add("passed_as", lambda: computed.passed_as(tensor, name))
        made = facts.get("computed") or {}
        if made.get("drawn") or arisen.is_drawn(tensor):
            facts["drawn"] = True
        chosen = made.get("by") in ("argmax", "argmin", "topk", "max", "min") and (
            facts.get("sample") or {}
        ).get("likely")
        making = (facts.get("sample") or {}).get("by") == "inside"
        if (made.get("drawn") or chosen or made.get("of_sizes")) and not making:
            facts.pop("sample", None)  # chance drew them, a model chose, or sizes alone: no sample has them
    if not position and not content.is_floating_point() and "computed" not in facts:
        entry = str((facts.get("variable") or {}).get("name", ""))
        add("computed", lambda: computed.computed_entry(entry))
        if found and "computed" not in facts:
            add("computed", lambda: sampled.sampled_facts(found[0]))
    if not position and "computed" not in facts:
        name = str((facts.get("variable") or {}).get("name", ""))
        add("assigned", lambda: given.given_facts(name, tensor))
        if "assigned" not in facts:
            add("assigned", lambda: entries.entry_facts(name, violation.get("given", tensor)))
            if (facts.get("assigned") or {}).pop("counts_batch", False):
                facts.pop("sample", None)
                add("sample", lambda: at_work.sample_facts([tensor], ""))
        if "assigned" not in facts:
            add("assigned", lambda: sourced.sourced_facts(name, violation.get("given", tensor)))
    if _indexes(operator):
        of = (violation.get("args") or {}).get("self")
        add("indexed", lambda: indexed.indexed_facts(of))
        add("cut_since", lambda: stale.cut_since(of, facts.get("computed") or facts.get("assigned") or {}))
    sample = facts.get("sample") or {}
    most = 2 * scan.get("bad", 0) >= scan.get("total", 0)
    if most and "one_of" in sample and sample.get("likely"):  # more of them than of one sample
        del sample["likely"]
        sample["by"] = "hand"
    alone = "one_of" not in sample and "row" in sample and sample.get("likely") and tensor.dim() > 1
    if most and alone and rows_of.only_bad_row(tensor, scan, predicate) is None:  # of several rows
        del facts["sample"]
        add("sample", lambda: at_work.sample_facts([tensor], ""))
        sample = facts.get("sample") or {}
    if "computed" in facts and "one_of" in sample and sample.get("likely") and "row" not in sample:
        del sample["likely"]  # what computed them is known, and no sample is more likely than another
        sample["by"] = "hand"
    by_place = (facts.get("sample") or {}).get("by") in ("place", "row")
    if by_place and (computed.counts_across(tensor) or arisen.is_drawn(tensor)):
        facts.pop("sample")
    if (facts.get("sample") or {}).get("by") == "hand" and _is_models(facts.get("variable") or {}):
        facts.pop("sample")
    if not {"dataset_index", "batch", "request", "one_of", "key", "file"} & set(facts.get("sample") or {}):
        facts.pop("sample", None)  # a row alone, of what nobody knows
    if tensor.requires_grad and not _is_rows_input(facts):
        add("sample", lambda: at_work.of_a_prediction(facts.pop("sample", None)))
    sample = facts.get("sample") or {}
    if "row" in sample and sample.get("by", "replaced") == "replaced":  # it has another number, or none of it
        if "masked" in facts and "by" not in sample:
            sample["by"] = "padding"
        elif "rounded" in (facts.get("variable") or {}):
            sample["by"] = "rounded"
    if operator.startswith("nll_loss") and scan.get("value") == 255 and values.is_of_two_colours(content):
        facts["two_colours"] = True
    value = scan.get("value")
    beyond = type(value) is type(scan.get("hi")) is int and value > scan["hi"] and marks.is_usual(value)
    if not content.is_floating_point() and type(value) is int and (value < 0 or value == 255 or beyond):
        add("written", lambda: marks.only_writer(value))
        if value == -1 and "written" not in facts:  # else it may be the one or the other
            add("codes", codes.codes_facts)
            if "codes" not in facts and "computed" not in facts:
                add("floored", floored.only_division)
    if operator.startswith("multinomial") and values.sum_to_one(content):
        facts["sums_to_one"] = True
    if operator.startswith("nll_loss") and texts.speak_of("category_id"):
        facts["categories"] = True
    of_table = operator.startswith(("nll_loss", "embedding"))
    if of_table and scan.get("value") == scan.get("hi") and facts.get("made"):
        add("filled", lambda: filled.filled_with(facts["made"]))
    if operator.startswith("nll_loss") and (scan.get("value") or 0) < 0:
        add("taken_off", taken_off.from_labels)
    if scan.get("value") == 255 and not content.is_floating_point():
        add("less_one", texts.less_one)
    add("watch", recorded.watched)


def is_chosen(tensor: Any, scan: dict[str, Any], predicate: Any) -> bool:
    """The program speaks of what chooses the next of a text by scores, and the last of a row alone is bad."""
    chooses = texts.speak_of("multinomial", "argmax", "topk", "generate(", "sample(")
    return chooses and values.is_newest(tensor, scan, predicate)
