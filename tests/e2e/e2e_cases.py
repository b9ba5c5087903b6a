"""The table of examples: what `trapline run` must say about each of them, one row per file.

Values are what the example's own data holds; where they depend on the run (which batch, which row) `truth`
looks the finding up in the example's data set and checks that it really is so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

Finding = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One example and its finding. A field of None is not checked."""

    file: str
    requirement: str
    code: str
    cause: str
    op: str
    argument: Optional[str]
    value: Any = None  # of the element; a callable decides
    valid: Optional[tuple[Any, Any]] = None  # smallest and largest valid value, both valid
    also: tuple[int, ...] = ()  # further valid values
    dtype: Optional[str] = None
    device: str = "cpu"
    layer: dict[str, Any] = field(default_factory=dict)  # fields that the layer must have
    sample: bool = False  # a data set index must be named (and `truth` must hold for it)
    truth: Optional[Callable[[Any, Finding], None]] = None
    says: tuple[str, ...] = ()  # words of the text report, besides the facts above
    never: tuple[str, ...] = ()  # advice that would be wrong here
    surfaced: bool = False  # the line marked `# <- surfaces` is where it would have been noticed
    options: tuple[str, ...] = ()  # of trapline run
    device_assert: bool = True
    certainty: str = "proven"
    repeats: int = 1  # how often each element in memory stands in the argument: index.expand(...)

    @property
    def name(self) -> str:
        return self.file[:-3]

    @property
    def id(self) -> str:
        return f"{self.requirement}-{self.name}"


def _item(dataset: Any, finding: Finding) -> Any:
    return dataset[finding["sample"]["dataset_index"]]


def _label_is(value: int) -> Callable[[Any, Finding], None]:
    def truth(dataset: Any, finding: Finding) -> None:
        assert int(_item(dataset, finding)[1]) == value
        assert finding["element"]["index"] == [finding["sample"]["row"]]

    return truth


def _mask_has(value: int) -> Callable[[Any, Finding], None]:
    def truth(dataset: Any, finding: Finding) -> None:
        mask = _item(dataset, finding)[1]
        row, y, x = finding["element"]["index"]
        assert row == finding["sample"]["row"]
        assert [y, x] == (mask == value).nonzero()[0].tolist()  # the first bad pixel of that image

    return truth


def _is_padding(dataset: Any, finding: Finding) -> None:
    ids, _ = _item(dataset, finding)
    row, column = finding["element"]["index"]
    assert row == finding["sample"]["row"]
    assert column == len(ids)  # the first padded place of that review


def _has_item(dataset: Any, finding: Finding) -> None:
    items, _ = _item(dataset, finding)
    assert finding["element"]["value"] in items.tolist()


def _is_long_document(dataset: Any, finding: Finding) -> None:
    if (
        "sample" in finding and "dataset_index" in finding["sample"]
    ):  # positions are shared by the whole batch
        assert len(_item(dataset, finding)) - 1 > 64


def _uses_all_steps(dataset: Any, finding: Finding) -> None:
    assert int(_item(dataset, finding)[1]) == 20
    assert finding["element"]["index"] == [finding["sample"]["row"], 0, 0]


def _has_nan(dataset: Any, finding: Finding) -> None:
    assert _item(dataset, finding)[0].isnan().any()


def _is_everybodys(_: Any, finding: Finding) -> None:
    """Most rows of the batch are bad: no sample is at fault, the batch is named with those that it holds."""
    sample = finding["sample"]
    assert sample["by"] == "hand" and not {"row", "dataset_index", "likely"} & set(sample)
    assert sample["of"] == 32 and len(set(sample["one_of"])) == 8


def _no_legal_move(dataset: Any, finding: Finding) -> None:
    if "sample" in finding and "dataset_index" in finding["sample"]:
        assert not _item(dataset, finding)[1].any()


def _level_is_torn(dataset: Any, finding: Finding) -> None:
    assert int(_item(dataset, finding)["level"]) == 37


LOSS = {"op": "cross_entropy", "argument": "target", "dtype": "int64", "also": (-100,), "sample": True}
BCE = {"op": "binary_cross_entropy", "argument": "input", "valid": (0, 1), "dtype": "float32", "sample": True}
HOST = {"device_assert": False, "certainty": "determined"}

CASES: list[Case] = [
    Case(
        "image_classifier_head.py",
        "A1",
        "TL102",
        "num_classes_mismatch",
        **LOSS,
        value=195,
        valid=(0, 194),
        layer={"name": "fc.5", "type": "Linear", "attribute": "out_features", "value": 195, "needed": 196},
        truth=_label_is(195),
        says=("fc.5", "196", "[0, 195)"),
    ),
    Case(
        "labels_one_based.py",
        "A1",
        "TL101",
        "label_out_of_range",
        **LOSS,
        value=10,
        valid=(0, 9),
        layer={"name": "head.2", "type": "Linear", "attribute": "out_features", "value": 10},
        truth=_label_is(10),
        says=("1-based", "[0, 10)"),
    ),
    Case(
        "ignore_label.py",
        "A1",
        "TL101",
        "label_out_of_range",
        **LOSS,
        value=-1,
        valid=(0, 4),
        layer={"name": "head", "type": "Conv2d", "attribute": "out_channels", "value": 5},
        truth=_mask_has(-1),
        says=("ignore_index=-1", "[0, 5)"),
        never=("needs 6", "1-based"),
    ),
    Case(
        "ignore_255.py",
        "A1",
        "TL101",
        "label_out_of_range",
        **LOSS,
        value=255,
        valid=(0, 5),
        layer={"name": "classifier.2", "type": "Conv2d", "attribute": "out_channels", "value": 6},
        truth=_mask_has(255),
        says=("ignore_index=255", "[0, 6)"),
        never=("needs 256", "1-based"),
    ),
    Case(
        "tokenizer_too_large.py",
        "A2",
        "TL103",
        "embedding_index_out_of_range",
        "embedding",
        "input",
        value=22,
        valid=(0, 21),
        dtype="int64",
        sample=True,
        truth=_is_padding,
        layer={
            "name": "words",
            "type": "Embedding",
            "attribute": "num_embeddings",
            "value": 22,
        },
        says=("words", "23", "pad"),
    ),
    Case(
        "embedding_bag_categories.py",
        "A2+A11",
        "TL103",
        "embedding_index_out_of_range",
        "embedding_bag",
        "input",
        value=lambda v: v in (505, 507),
        valid=(0, 499),
        dtype="int64",
        sample=True,
        truth=_has_item,
        layer={"name": "items", "type": "EmbeddingBag", "attribute": "num_embeddings", "value": 500},
        says=("items", "500"),
    ),
    Case(
        "sequence_too_long.py",
        "A3",
        "TL104",
        "position_index_out_of_range",
        "embedding",
        "input",
        value=64,
        valid=(0, 63),
        dtype="int64",
        truth=_is_long_document,
        layer={"name": "position", "type": "Embedding", "attribute": "num_embeddings", "value": 64},
        says=("position", "80", "64"),
        never=("resize_token_embeddings", "vocabulary"),
    ),
    Case(
        "gather_index.py",
        "A4",
        "TL105",
        "index_out_of_range",
        "gather",
        "index",
        value=20,
        valid=(0, 19),
        dtype="int64",
        repeats=16,
        sample=True,
        truth=_uses_all_steps,
        says=("[0, 20)",),
    ),
    Case(
        "bce_without_sigmoid.py",
        "A5",
        "TL106",
        "loss_input_out_of_range",
        **{**BCE, "sample": False},
        truth=_is_everybodys,
        value=lambda v: v < 0 or v > 1,
        says=("sigmoid", "BCEWithLogits"),
        never=("NaN",),
    ),
    Case(
        "bce_nan.py",
        "A5",
        "TL106",
        "loss_input_out_of_range",
        **BCE,
        value="nan",
        truth=_has_nan,
        says=("NaN",),
        never=("BCEWithLogits",),
    ),
    Case(
        "sampling_nan.py",
        "A6",
        "TL107",
        "invalid_probability",
        "multinomial",
        "input",
        value="nan",
        dtype="float32",
        says=("NaN",),
    ),
    Case(
        "categorical_nan.py",
        "A6",
        "TL107",
        "invalid_probability",
        "Categorical",
        "logits",
        **HOST,
        truth=_no_legal_move,
        says=("logits",),
    ),
    Case(
        "nan_to_index.py",
        "A7",
        "TL108",
        "nan_to_index",
        "x[index]",
        "index",
        value=lambda v: str(v) in ("nan", "-9223372036854775808"),
        valid=(-11, 10),
        dtype="int64",
        sample=True,
        truth=_has_nan,
        surfaced=True,
        says=("NaN",),
    ),
    Case(
        "target_n1.py",
        "A8",
        "TL201",
        "shape_mismatch",
        "binary_cross_entropy_with_logits",
        None,
        **HOST,
        says=("[16]", "[16, 1]", "squeeze(1)"),
    ),
    Case(
        "linear_shape.py",
        "A8",
        "TL201",
        "shape_mismatch",
        "linear",
        None,
        **HOST,
        layer={
            "name": "classifier.0",
            "type": "Linear",
            "attribute": "in_features",
            "value": 400,
            "needed": 256,
        },
        says=("[20, 256]", "classifier.0", "256", "400"),
    ),
    Case(
        "two_devices.py",
        "A9",
        "TL202",
        "device_mismatch",
        "linear",
        None,
        **HOST,
        says=("head.weight is on meta", 'head.to_empty(device="cpu")'),  # moved from there it has no data
    ),
    Case(
        "float_labels.py",
        "A9",
        "TL203",
        "dtype_mismatch",
        "cross_entropy",
        "target",
        **HOST,
        says=("float32", ".long()"),
    ),
    Case(
        "hardcoded_cuda.py",
        "C5",
        "TL101",
        "label_out_of_range",
        **LOSS,
        value=10,
        valid=(0, 9),
        truth=_label_is(10),
        options=("--cpu",),
        device="cuda:0",
        says=("[0, 10)",),
    ),
    Case(
        "workers.py",
        "A1+B5",
        "TL101",
        "label_out_of_range",
        **LOSS,
        value=37,
        valid=(0, 11),
        layer={"name": "model[2]", "type": "Linear", "attribute": "out_features", "value": 12},
        truth=_level_is_torn,
        says=("[0, 12)",),
    ),
]

if "TRAPLINE_TEST_ADAPTER" in os.environ:  # the guard for any torch does not know the memory of --cpu
    CASES = [case for case in CASES if "--cpu" not in case.options]
