"""Checks that take more than one comparison to understand, and packages' own classes of exceptions."""

from __future__ import annotations

from typing import Any

import pytest

SETUP = "import torch\nfrom trapline._exceptions import hooks\nhooks.install()\n"
PACKAGE = '''
import torch
from torch import nn


class InputDataError(Exception):
    """Of no class of Python's that says more."""


class Silent(Exception):
    pass


def no_nans(Z):
    if torch.any(torch.isnan(Z)).item():
        raise InputDataError("Input data contains NaN values.")


def spline(inputs, left=0.0, right=1.0):
    if torch.min(inputs) < left or torch.max(inputs) > right:
        raise Silent()


def counted(X, max_value):
    if isinstance(X, torch.Tensor):
        if (X > max_value).sum() > 0:
            raise ValueError("Parameter X must have a maximum value below {}: labels".format(max_value))


def lagged(sequence, length, lags):
    sequence_length = sequence.shape[1]
    indices = [lag - 0 for lag in lags]
    if max(indices) + length > sequence_length:
        raise ValueError(f"lags cannot go further than history length, found lag {max(indices)}")


class Chunked(nn.Module):
    def forward(self, input_ids=None, states=None):
        if input_ids is not None:
            input_shape = input_ids.size()
        else:
            raise ValueError("give ids")
        chunk = 8
        must_pad = input_shape[-1] % chunk != 0 and input_shape[-1] > 4 and states is None
        if must_pad:
            padding = chunk - input_shape[-1] % chunk
            if self.training is True:
                raise ValueError(f"sequence length {input_shape[-1]} has to be a multiple of {chunk}")
            return padding


class Elements(nn.Module):
    def __init__(self):
        super().__init__()
        table = torch.full((20,), -1)
        table[torch.tensor([1, 6, 7, 8])] = torch.arange(4)
        self.register_buffer("table", table)

    def forward(self, numbers):
        places = self.table.to(torch.long)[numbers]
        if (places[numbers != -1] == -1).any():
            raise ValueError("Model doesn't support some elements in input")


class Early(nn.Module):
    def __init__(self, Z):
        no_nans(Z)
        super().__init__()


def checked(value, name, max_value):
    if (value > max_value).any():
        raise ValueError("Parameter {} must have a maximum value below {}".format(name, max_value))


class Categorical:
    def log_probability(self, X):
        checked(X, "X", max_value=5)


class Scale:
    def of(self, X):
        checked(X, "X", max_value=5)


def limited(labels, most):
    if labels.shape[1] > most:
        raise ValueError(f"Labels of {labels.shape[1]} cannot exceed {most}")


def carried(days):
    import pydantic

    class Inputs(pydantic.BaseModel):
        model_config = {"arbitrary_types_allowed": True}
        time: torch.Tensor

        @pydantic.field_validator("time", mode="before")
        @classmethod
        def whole(cls, v):
            if torch.any(torch.isnan(v)):
                raise ValueError("Input 'time' contains NaN values")
            return v

    return Inputs(time=days)


def chained(target, classes):
    if not 0 <= target.max() < classes:
        raise ValueError("target is no class")


def by_methods(target, classes):
    if torch.logical_or(target.lt(0), target.ge(classes)).any():
        raise ValueError("target is no class")


def one_of(labels, allowed):
    if not torch.isin(labels, allowed).all():
        raise ValueError("unknown labels")


def listed(labels, classes):
    if max(labels) >= classes:
        raise ValueError("labels are no classes")


class Positions(nn.Module):
    def __init__(self, most):
        super().__init__()
        self.most = most

    def forward(self, ids):
        n, kind = ids.shape[1], ids.dtype
        assert n <= self.most
        return n, kind


def extremes(labels, num_classes):
    low, high = torch.aminmax(labels.reshape(-1), dim=0)
    torch._assert_async(low >= 0, "Class values must be non-negative.")
    torch._assert_async(high < num_classes, "Class values must be smaller than num_classes.")


def voices(speaker_id, count):
    if not 0 <= speaker_id < count:
        raise ValueError(f"Set `speaker_id` in the range 0-{count - 1}.")


def size_of(batch, count):
    if not 0 <= batch < count:
        raise ValueError("batch is too large")


def distinct(y, n_classes):
    import numpy as np

    if len(np.unique(y)) > n_classes:
        raise ValueError("y has more than n_class unique elements.")


def wide(x):
    x = x.reshape(-1, 8)
    return x.reshape(7, 20)


class Matrix:
    def update(self, preds, target, num_classes):
        bins = torch.bincount(target * num_classes + preds, minlength=num_classes**2)
        return bins.reshape(num_classes, num_classes)


class Solver:
    def step(self, state):
        y, f = state
        t0 = torch.tensor(0.0)
        dt = torch.tensor(0.0) if not torch.isfinite(f).all() else torch.tensor(0.1)
        assert t0 + dt > t0, "underflow in dt {}".format(dt.item())

    def check(self, t0, dt, f):
        assert t0 + dt > t0, "dt"


def chosen(mode, flag):
    if mode.dim() == 1:
        if flag is True:
            raise ValueError("flag")
'''


def test_a_class_of_exceptions_that_is_none_of_pythons(refuse: Any) -> None:
    finding = refuse("y = torch.ones(6, 1)\ny[4] = float('nan')\nchecker.no_nans(y)\n").finding
    assert finding["code"] == "TL109"
    assert finding["summary"].startswith("no_nans: y[4, 0] is NaN")
    assert finding["evidence"][0]["text"] == "InputDataError: Input data contains NaN values."


def test_a_model_that_refuses_before_it_is_one(refuse: Any) -> None:
    finding = refuse("y = torch.ones(6)\ny[4] = float('nan')\nchecker.Early(y)\n").finding
    assert finding["summary"].startswith("Early: y[4] is NaN")


def test_what_a_distribution_takes_stands_in_its_name(refuse: Any) -> None:
    finding = refuse("x = torch.tensor([0, 7, 2])\nchecker.Categorical().log_probability(x)\n").finding
    assert finding["code"] == "TL101"
    assert finding["summary"].endswith("x[1] is 7; checker takes at most 5 (`max_value`)")
    assert refuse("checker.Scale().of(torch.tensor([0, 7, 2]))\n").reports == []


def test_nan_that_arithmetic_has_left_in_its_place(refuse: Any) -> None:
    finding = refuse(
        "y = torch.arange(6.0).reshape(6, 1)\ny[4] = float('nan')\nchecker.no_nans((y - 2) / 3)\n"
    ).finding
    assert finding["summary"].startswith("no_nans: y[4, 0] is NaN")


def test_the_longest_of_the_batch(refuse: Any) -> None:
    program = (
        "from trapline._fault.data import batches\nbatches.install()\n"
        "from torch.utils.data import DataLoader\n"
        "lengths = [5, 7, 9, 6, 8, 21, 4, 5]\n"
        "class Texts(torch.utils.data.Dataset):\n"
        "    def __len__(self):\n        return 8\n"
        "    def __getitem__(self, i):\n        return torch.arange(1, lengths[i] + 1)\n"
        "texts = Texts()\n"
        "def collate(rows):\n    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)\n"
        "for labels in DataLoader(texts, batch_size=4, collate_fn=collate):\n"
        "    checker.limited(labels, 16)\n"
    )
    finding = refuse(program).finding
    assert finding["summary"].startswith("limited: labels [4, 21] does not fit")
    assert finding["sample"]["dataset_index"] == 5 and finding["sample"]["batch"] == 1


def test_what_a_validator_of_pydantics_carries(refuse: Any) -> None:
    pytest.importorskip("pydantic")
    finding = refuse("days = torch.ones(6)\ndays[4] = float('nan')\nchecker.carried(days)\n").finding
    assert finding["code"] == "TL109"
    assert finding["summary"].endswith("days[4] is NaN")
    assert finding["origin"]["line"] == 7


def test_an_exception_without_a_message(refuse: Any) -> None:
    finding = refuse("x = torch.rand(4, 2)\nx[3, 1] = 1.5\nchecker.spline(x)\n").finding
    assert finding["code"] == "TL106"
    assert finding["summary"] == "spline: x[3, 1] is 1.5; checker takes at most 1 (`right`)"
    assert finding["fix"] == ["look at where x[3, 1] comes from"]


def test_a_mask_that_is_counted(refuse: Any) -> None:
    finding = refuse("x = torch.tensor([[0, 1], [7, 2]])\nchecker.counted(x, 5)\n").finding
    assert finding["code"] == "TL101"
    assert finding["summary"] == "counted: x[1, 0] is 7; checker takes at most 5 (`max_value`)"


def test_the_largest_of_a_list_of_settings(refuse: Any) -> None:
    finding = refuse("history = torch.rand(4, 30)\nchecker.lagged(history, 24, [1, 2, 7])\n").finding
    assert finding["code"] == "TL201"
    assert finding["summary"] == (
        "lagged: history [4, 30] does not fit: `max(indices) + length` is 31, `sequence_length` is 30"
    )


def test_the_conditions_around_a_setting(refuse: Any) -> None:
    finding = refuse("ids = torch.zeros(3, 59).long()\nchecker.Chunked()(input_ids=ids)\n").finding
    assert finding["code"] == "TL201"
    assert finding["summary"] == (
        "Chunked: ids [3, 59] does not fit: `input_shape[-1] % chunk` is 3; checker refuses `must_pad`"
    )


def test_a_table_that_does_not_know_a_value(refuse: Any) -> None:
    finding = refuse("atoms = torch.tensor([[1, 6], [16, 8]])\nchecker.Elements()(atoms)\n").finding
    assert finding["code"] == "TL105"
    assert finding["summary"].startswith("Elements: atoms[1, 0] is 16; ")
    assert finding["element"]["value"] == 16


def test_a_condition_that_is_no_ones_fault_is_not_said(refuse: Any) -> None:
    ended = refuse("checker.chosen(torch.rand(3), True)\n")
    assert ended.code == 1 and ended.reports == []


def test_the_scale_of_a_normal_distribution(run: Any) -> None:
    program = (
        "import torch\nmodel = torch.nn.Linear(3, 2)\n"
        "with torch.no_grad():\n    model.weight[0] = float('nan')\n"
        "sigma = model(torch.rand(5, 3)).exp()\n"
        "torch.distributions.Normal(torch.zeros(5, 2), sigma, validate_args=False).sample()\n"
    )
    finding = run(program, SETUP).finding
    assert finding["code"] == "TL107"
    assert finding["summary"].startswith("normal: std=sigma [5, 2] holds NaN")
    assert "model.weight" in finding["summary"]
    assert finding["origin"]["line"] == 6


def test_the_deviations_of_ones_own_normal(run: Any) -> None:
    program = (
        "import torch\nmu = torch.zeros(3)\nsigma = torch.tensor([1.0, -0.5, 2.0])\ntorch.normal(mu, sigma)\n"
    )
    finding = run(program, SETUP).finding
    assert finding["summary"] == "normal: sigma[1] is -0.5, but must be >= 0"


def test_floats_that_are_no_ids(run: Any) -> None:
    program = "import torch\ntable = torch.nn.Embedding(9, 2)\nx = torch.tensor([{}])\ntable(x)\n"
    fix = run(program.format("1.5, -0.25"), SETUP).finding["fix"]
    assert fix[0].startswith("x holds numbers that are not whole, so it holds no ids")


def test_ids_that_came_as_floats(run: Any) -> None:
    program = "import torch\ntable = torch.nn.Embedding(9, 2)\nx = torch.tensor([1.0, 3.0])\ntable(x)\n"
    assert run(program, SETUP).finding["fix"][0] == "use `x.long()`"


def test_other_ways_to_write_a_comparison(refuse: Any) -> None:
    for name in ("chained", "by_methods"):
        finding = refuse(f"y = torch.tensor([[0, 1], [2, 7]])\nchecker.{name}(y, 4)\n").finding
        assert finding["code"] == "TL101"
        assert finding["summary"].startswith(f"{name}: y[1, 1] is 7; checker takes ")
        assert finding["valid"]["max"] == 3


def test_values_that_are_none_of_a_few(refuse: Any) -> None:
    program = "y = torch.tensor([0, 2, 5, 2])\nchecker.one_of(y, torch.tensor([0, 2, 4]))\n"
    finding = refuse(program).finding
    assert finding["code"] == "TL101"
    assert finding["summary"].startswith("one_of: y[2] is 5; checker needs ")


def test_a_list_of_labels(refuse: Any) -> None:
    finding = refuse("y = [0, 2, 5, 2]\nchecker.listed(y, 4)\n").finding
    assert finding["code"] == "TL101"
    assert finding["element"]["index"] == [2] and finding["element"]["value"] == 5
    assert finding["summary"].endswith("is 5; checker takes below 4 (`classes`)")


def test_a_label_beyond_the_classes_that_made_a_result_too_large(refuse: Any) -> None:
    program = (
        "preds, y = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 1, {}, 3])\n"
        "checker.Matrix().update(preds, y, {})\n"
    )
    finding = refuse(program.format(9, 4)).finding
    assert finding["code"] == "TL101"
    assert finding["summary"] == "update: y[2] is 9; checker takes [0, 4) (`num_classes`)"
    assert refuse(program.format(2, 4)).reports == []


def test_a_step_that_comes_to_nothing_for_a_nan(refuse: Any) -> None:
    program = (
        "y = torch.tensor([[0.5, 0.2], [-0.1, 1.0]])\nwith torch.no_grad():\n"
        "    checker.Solver().step((y, torch.log(y)))\n"
    )
    finding = refuse(program).finding
    assert finding["code"] == "TL109"
    assert finding["summary"].startswith("step: f[1, 0] is NaN")
    # What the caller handed in is the caller's.
    ended = refuse(
        "n = torch.tensor([1.0, float('nan')])\nt = torch.tensor(0.0)\nchecker.Solver().check(t, t, n)\n"
    )
    assert ended.reports == []


def test_sizes_that_were_given_with_others(refuse: Any) -> None:
    finding = refuse("ids = torch.zeros(4, 31).long()\nchecker.Positions(24)(ids)\n").finding
    assert finding["code"] == "TL201"
    assert finding["summary"] == "Positions: ids [4, 31] does not fit: `n` is 31, `self.most` is 24"


def test_the_extremes_of_one_call(refuse: Any) -> None:
    finding = refuse("y = torch.tensor([[0, 1], [255, 2]])\nchecker.extremes(y, 4)\n").finding
    assert finding["code"] == "TL101"
    assert finding["summary"] == "extremes: y[1, 0] is 255; checker takes [0, 4) (`num_classes`)"
    assert finding["fix"][0].startswith("if 255 marks what is not to count: ")


def test_both_bounds_of_the_extremes_of_one_call(refuse: Any) -> None:
    finding = refuse("y = torch.tensor([[0, 1], [-1, 2]])\nchecker.extremes(y, 4)\n").finding
    assert (finding["valid"]["text"], finding["valid"]["min"], finding["valid"]["max"]) == ("[0, 4)", 0, 3)
    assert finding["summary"] == "extremes: y[1, 0] is -1; checker takes [0, 4) (`num_classes`)"


def test_a_number_that_is_one_of_several(refuse: Any) -> None:
    finding = refuse("checker.voices(4, 4)\n").finding
    assert finding["code"] == "TL105"
    assert finding["element"]["value"] == 4 and finding["summary"].startswith("voices: speaker_id is 4; ")
    assert refuse("checker.size_of(4, 4)\n").reports == []


def test_different_values_of_an_array_of_floats(refuse: Any) -> None:
    program = "import numpy\ny = numpy.array([0.0, 1.0, {}, 1.0], dtype='float32')\nchecker.distinct(y, 2)\n"
    finding = refuse(program.format("2.0")).finding
    assert finding["code"] == "TL101"
    assert finding["element"]["value"] == 2 and finding["element"]["index"] == [2]
    assert refuse(program.format("0.5")).reports == []


def test_what_a_librarys_call_was_given(refuse: Any) -> None:
    finding = refuse("x = torch.rand(16, 5)\nchecker.wide(x)\n").finding
    assert finding["code"] == "TL201"
    assert finding["fix"] == [
        "the shape is a library's: check the sizes and values that `checker.wide(x)` is given: x [16, 5]"
    ]
