# ruff: noqa: E501 (programs in strings)
"""What an installed package's own check refused: the user's variable, the element, what would be taken."""

from __future__ import annotations

from typing import Any

import pytest

SETUP = "import torch\nfrom trapline._exceptions import hooks\nhooks.install()\n"
PACKAGE = """
import numpy as np
import torch
from torch import nn


def range_of(scores, target):
    if not (target.max() < scores.size(1) and target.min() >= 0):
        raise ValueError(f"expected target in range [0, {scores.size(1)})")


def binary(preds, target, ignore_index=None):
    unique_values = torch.unique(target, dim=None)
    if ignore_index is None:
        check = torch.any((unique_values != 0) & (unique_values != 1))
    else:
        check = torch.any((unique_values != 0) & (unique_values != 1) & (unique_values != ignore_index))
    if check:
        raise RuntimeError(f"Detected the following values in `target`: {unique_values}")


def unique(preds, target, num_classes):
    for t, name in ((preds, "preds"), (target, "target")):
        num_unique_values = len(torch.unique(t))
        if num_unique_values > num_classes:
            raise RuntimeError(f"Detected more unique values in `{name}` than expected")


def kinds(target, num_classes, ignore_index=None):
    different = len(torch.unique(target))
    too_many = different > num_classes if ignore_index is None else different > num_classes + 1
    if too_many:
        raise RuntimeError("more kinds in `target` than expected")


def masked(scores, labels):
    kept = labels[labels != -100]
    assert not ((kept < 0) | (kept >= scores.shape[1])).any(), "labels out of range"


def boxes(boxes1):
    if not (boxes1[:, 2:] >= boxes1[:, :2]).all():
        raise ValueError(f"boxes1 must be in corner format, but got {boxes1}")


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.image_size = (32, 32)

    def forward(self, pixel_values):
        batch, channels, height, width = pixel_values.shape
        if height != self.image_size[0] or width != self.image_size[1]:
            raise ValueError("Input image size doesn't match model")


def same(preds, target):
    if preds.ndim == target.ndim + 1:
        return
    elif preds.ndim == target.ndim:
        if preds.shape != target.shape:
            raise ValueError("expected the same shape")
    else:
        raise ValueError("Either of the same shape, or one dimension more")


def check(condition, message):
    if not condition:
        raise ValueError(message)


def helped(scores, index):
    check(index.max().item() < scores.shape[0], "an index is out of range")


def torch_asserted(probs):
    torch._assert(((probs >= 0) & (probs <= 1)).all(), "probabilities have to be in [0, 1]")


def asserted(gain, target):
    torch._assert_async((target >= 0).all(), "targets must not be negative")


def of_numpy(labels, names):
    if np.max(labels) >= len(names):
        raise ValueError("a label has no name")


def class_count(scores, num_classes):
    if scores.shape[1] != num_classes:
        raise ValueError("wrong number of classes")


class Rows:
    def __init__(self, count):
        self.count = count

    def __getitem__(self, key):
        if (key < 0 and key + self.count < 0) or (key >= self.count):
            raise IndexError(f"Invalid key: {key} is out of bounds for size {self.count}")


def level_of(label, num_classes):
    if not label <= num_classes - 1:
        raise ValueError("Class label must be smaller or equal to %d (num_classes-1)" % (num_classes - 1))


class OwnError(ValueError):
    pass


def with_its_own_class(labels, num_classes):
    if labels.max() >= num_classes:
        raise OwnError("label out of range")


def looked_up(table, target):
    if table.knows(target):
        raise ValueError("unknown label in target")


class Pool(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        scores = x.sum(-1)
        return torch.topk(scores.view(1, -1), self.k, dim=1)


def channels(input, target):
    if target.shape[1] != 1 and target.shape[1] != input.shape[1]:
        raise ValueError("number of channels for target is neither 1 nor the same as input")


def either(target):
    if target.max() > 1 and target.min() < 0:
        raise ValueError("target is neither a probability nor a label")


def changed(target):
    if target.max() > 3:
        target = target.clamp(max=3)
        raise ValueError("target out of range")


def setting(num_classes):
    if num_classes < 2:
        raise ValueError("expected num_classes to be at least 2: no class label")


def of_neither(gain):
    if (gain < 0).any():
        raise ValueError("gain must be non-negative")
"""


def test_a_label_beyond_the_classes_is_named_as_the_user_has_it(refuse: Any) -> None:
    finding = refuse(
        "scores = torch.rand(2, 3)\nmask = torch.tensor([[0, 1, 2], [2, 7, 0]])\nchecker.range_of(scores, mask)\n"
    ).finding
    assert finding["code"] == "TL101" and finding["certainty"] == "determined"
    assert finding["summary"] == "range_of: mask[1, 1] is 7; checker takes below 3 (`scores.size(1)`)"
    assert finding["element"]["index"] == [1, 1] and finding["element"]["value"] == 7
    assert finding["element"]["bad"] == 1 and finding["element"]["max"] == 7
    assert finding["valid"]["max"] == 2
    assert finding["origin"]["line"] == 7
    assert any("checker/__init__.py:9: checker needs" in one["text"] for one in finding["evidence"])


def test_one_label_of_a_loop(refuse: Any) -> None:
    finding = refuse("ages = torch.tensor([1, 8, 0])\n[checker.level_of(age, 6) for age in ages]\n").finding
    assert finding["code"] == "TL101"
    assert finding["element"]["value"] == 8 and finding["valid"]["max"] == 5
    assert finding["summary"].endswith("is 8; checker takes at most 5 (`num_classes - 1`)")


def test_a_packages_own_class_of_exceptions(refuse: Any) -> None:
    finding = refuse("y = torch.tensor([0, 4, 2])\nchecker.with_its_own_class(y, 3)\n").finding
    assert finding["code"] == "TL101"
    assert finding["summary"] == "with_its_own_class: y[1] is 4; checker takes below 3 (`num_classes`)"


def test_the_branch_that_ran_made_the_condition(refuse: Any) -> None:
    finding = refuse("y = torch.tensor([0, 1, 2, 1])\nchecker.binary(torch.rand(4), y)\n").finding
    assert finding["summary"] == "binary: y[2] is 2; checker takes 0 or 1"
    finding = refuse("y = torch.tensor([0, 9, 1, 1])\nchecker.binary(torch.rand(4), y, -1)\n").finding
    assert finding["summary"] == "binary: y[1] is 9; checker takes -1, 0 or 1"


def test_too_many_different_values(refuse: Any) -> None:
    finding = refuse("y = torch.tensor([0, 1, 2, 7])\nchecker.unique(torch.zeros(4).long(), y, 3)\n").finding
    assert finding["summary"] == (
        "unique: y holds 4 different values, and 3 are expected (`num_classes`); y[3] is 7"
    )


def test_a_choice_between_two_conditions(refuse: Any) -> None:
    finding = refuse("y = torch.tensor([0, 1, 4, 2, 7])\nchecker.kinds(y, 4)\n").finding
    assert finding["summary"] == (
        "kinds: y holds 5 different values, and 4 are expected (`num_classes`); y[2] is 4"
    )


def test_what_a_mask_left_out_is_not_wrong(refuse: Any) -> None:
    finding = refuse(
        "labels = torch.tensor([-100, 1, -1, 2])\nchecker.masked(torch.rand(4, 3), labels)\n"
    ).finding
    assert finding["summary"] == "masked: labels[2] is -1; checker takes [0, 3) (`scores.shape[1]`)"
    assert finding["element"]["bad"] == 1
    assert finding["fix"][0].startswith("if -1 marks what is not to count: ")


def test_nan_in_boxes_leads_to_the_weights(refuse: Any) -> None:
    finding = refuse(
        "model = torch.nn.Linear(4, 4)\nwith torch.no_grad():\n    model.weight[1, 2] = float('nan')\n"
        "found = model(torch.rand(5, 4))\nchecker.boxes(found)\n"
    ).finding
    assert finding["code"] == "TL109"
    assert finding["summary"].startswith("boxes: found[0, 1] is NaN, one of 5 such elements of 20")
    assert "model.weight" in finding["summary"]


def test_a_wrong_row(refuse: Any) -> None:
    finding = refuse(
        "found = torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.5, 0.0, 0.2, 1.0]])\nchecker.boxes(found)\n"
    ).finding
    assert finding["code"] == "TL106"
    assert finding["summary"] == (
        "boxes: row 1 of found [2, 4] is [0.5, 0, 0.2, 1]; checker needs "
        "`(boxes1[:, 2:] >= boxes1[:, :2]).all()`"
    )
    assert "element" not in finding


def test_sizes_that_were_unpacked(refuse: Any) -> None:
    finding = refuse("pixels = torch.rand(1, 3, 32, 40)\nchecker.Image()(pixels)\n").finding
    assert finding["code"] == "TL201"
    assert finding["summary"] == (
        "Image: pixels [1, 3, 32, 40] does not fit: `width` is 40, `self.image_size[1]` is 32"
    )


def test_sizes_of_two_tensors(refuse: Any) -> None:
    finding = refuse("a, b = torch.rand(4, 1), torch.rand(4, 2)\nchecker.same(a, b)\n").finding
    assert finding["summary"] == (
        "same: a [4, 1] and b [4, 2] do not fit: `preds.shape` is [4, 1], `target.shape` is [4, 2]"
    )
    finding = refuse("a, b = torch.rand(4), torch.rand(4, 2)\nchecker.same(a, b)\n").finding
    assert finding["summary"] == (
        "same: a [4] and b [4, 2] do not fit: `preds.ndim` is 1, `target.ndim` is 2"
    )


def test_comparisons_that_count_together(refuse: Any) -> None:
    finding = refuse("a, b = torch.rand(2, 3), torch.rand(2, 2)\nchecker.channels(a, b)\n").finding
    assert finding["summary"] == (
        "channels: b [2, 2] and a [2, 3] do not fit: `target.shape[1]` is 2, `input.shape[1]` is 3; "
        "checker refuses `target.shape[1] != 1 and target.shape[1] != input.shape[1]`"
    )
    finding = refuse("y = torch.tensor([0, 2, -1])\nchecker.either(y)\n").finding
    assert finding["summary"] == (
        "either: y[1] is 2; checker refuses `target.max() > 1 and target.min() < 0`"
    )
    assert "valid" not in finding


def test_a_function_that_raises_for_others(refuse: Any) -> None:
    finding = refuse("rows = torch.tensor([1, 5, 2])\nchecker.helped(torch.rand(4, 2), rows)\n").finding
    assert finding["code"] == "TL105"
    assert finding["summary"] == "helped: rows[1] is 5; checker takes below 4 (`scores.shape[0]`)"


def test_assertions_of_torch(refuse: Any) -> None:
    finding = refuse("p = torch.tensor([0.5, 1.5])\nchecker.torch_asserted(p)\n").finding
    assert finding["code"] == "TL106"
    assert finding["summary"] == "torch_asserted: p[1] is 1.5; checker takes [0, 1]"
    assert finding["fix"][0] == (
        "raw scores become probabilities by `p.sigmoid()`; probabilities never leave [0, 1]"
    )
    finding = refuse("y = torch.tensor([0, -2])\nchecker.asserted(1, y)\n").finding
    assert finding["summary"] == "asserted: y[1] is -2; checker takes at least 0"


def test_arrays(refuse: Any) -> None:
    finding = refuse(
        "import numpy as np\nlabels = np.array([0, 4, 1])\nchecker.of_numpy(labels, ['a', 'b'])\n"
    ).finding
    assert finding["summary"] == "of_numpy: labels[1] is 4; checker takes below 2 (`len(names)`)"


def test_a_plain_number_as_an_index(refuse: Any) -> None:
    finding = refuse("rows = checker.Rows(3)\nrows[10]\n").finding
    assert finding["code"] == "TL105"
    assert finding["summary"] == "Rows: key is 10; checker takes below 3 (`self.count`)"


@pytest.mark.parametrize(
    ("program", "summary", "fix"),
    [
        (
            "scores = torch.rand(2, 3)\nscores.topk(5)",
            "topk: k is 5, but scores [2, 3] has 3 elements in dimension -1",
            "use `k=min(5, scores.size(-1))`",
        ),
        (
            "class Config:\n    k = 7\nx = torch.rand(2, 3)\ntorch.topk(x.softmax(-1), Config.k, dim=0)",
            "topk: k is 7 (`Config.k`), but x.softmax(-1) [2, 3] has 2 elements in dimension 0",
            "use `k=min(Config.k, x.softmax(-1).size(0))`",
        ),
        (
            "x = torch.rand(2, 3)\nx.kthvalue(k=9, dim=1)",
            "kthvalue: k is 9, but x [2, 3] has 3 elements in dimension 1",
            "use `k=min(9, x.size(1))`",
        ),
        (
            "x = torch.rand(2, 3)\nx.kthvalue(0)",
            "kthvalue: k is 0, but x [2, 3] has 3 elements in dimension -1",
            "k counts elements: it is 1 at least",
        ),
        (
            "checker.Pool(8)(torch.rand(5, 2))",
            "topk: k is 8 (`self.k`), but scores.view(1, -1) [1, 5] has 5 elements in dimension 1",
            "`self.k` is 8: make it 5 at most, or give the call an input from which as many come out",
        ),
        (
            "x, k = torch.rand(3), 9\ntorch.topk(x.erf(), k)",
            "topk: `k` is 9: larger than the dimension",
            "use `k=min(k, x.size(dim))`, x the tensor that topk is called for, dim the one it looks along",
        ),
    ],
)
def test_how_many_were_asked_for_of_how_many(refuse: Any, program: str, summary: str, fix: str) -> None:
    finding = refuse(program + "\n").finding
    assert finding["code"] == "TL201"
    assert finding["summary"] == summary
    assert finding["fix"][0] == fix


@pytest.mark.parametrize(
    "program",
    [
        "class Table:\n    def knows(self, target):\n        return True\nchecker.looked_up(Table(), torch.tensor([5]))",
        "checker.changed(torch.tensor([5]))",
        "class Mine(ValueError):\n    pass\ny = torch.tensor([5])\nif y.max() > 3:\n    raise Mine('label out of range')",
        "checker.setting(1)",
        "checker.setting(torch.tensor(1))",
        "checker.of_neither(torch.tensor([-1.0]))",
        "def mine(target):\n    if target.max() > 3:\n        raise ValueError('target out of range')\nmine(torch.tensor([5]))",
    ],
)
def test_what_is_not_certain_is_not_said(refuse: Any, program: str) -> None:
    ended = refuse(program + "\n")
    assert ended.code == 1 and ended.reports == []
