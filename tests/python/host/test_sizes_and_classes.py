"""Sizes that a check reads from names of its own, lengths of CTC, and class numbers of a distribution."""

from __future__ import annotations

from typing import Any

SETUP = (
    "import torch\nfrom trapline._exceptions import hooks\nfrom trapline._fault.data import batches\n"
    "batches.install()\nhooks.install()\n"
)
PACKAGE = """
import torch


def one_hot(labels, classes, dim=1):
    sh = list(labels.shape)
    if sh[dim] != 1:
        raise AssertionError("labels should have a channel with length equal to one.")


def truncate(predictions, targets, allowed=3):
    difference = predictions.shape[1] - targets.shape[1]
    if difference == 0:
        return
    elif abs(difference) > allowed:
        raise ValueError("Predictions and targets should be same length")


class Labelled(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})
"""
DATA = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
values = torch.tensor([3, 1, 2, 3, 2, 1, 4, 2, 1, 3, 2, 1])
"""


def test_sizes_in_a_list(refuse: Any) -> None:
    finding = refuse("mask = torch.zeros(4, 16, 32)\nchecker.one_hot(mask, 3)\n").finding
    assert finding["code"] == "TL201"
    assert finding["summary"] == (
        "one_hot: mask [4, 16, 32] does not fit: `sh[dim]` is 16; checker refuses `sh[dim] != 1`"
    )


def test_a_difference_of_sizes(refuse: Any) -> None:
    finding = refuse("p, t = torch.zeros(6, 50), torch.zeros(6, 100)\nchecker.truncate(p, t)\n").finding
    assert finding["code"] == "TL201"
    assert "p [6, 50] and t [6, 100] do not fit" in finding["summary"]


def test_the_length_that_ctc_refuses_and_its_sample(run: Any) -> None:
    finding = run(
        DATA
        + """
widths = torch.tensor([9, 16, 12, 11, 48, 10, 14, 13])
for width, _ in DataLoader(TensorDataset(widths, widths), batch_size=8):
    scores = torch.zeros(16, 8, 5).log_softmax(-1)
    nn.CTCLoss()(scores, torch.ones(8, 3, dtype=torch.long), width, torch.full((8,), 3))
""",
        SETUP,
    ).finding
    assert finding["summary"] == "ctc_loss: width[4] is 48, but log_probs has 16 time steps"
    assert finding["element"]["value"] == 48 and finding["element"]["index"] == [4]
    assert finding["sample"]["dataset_index"] == 4


def test_class_numbers_that_a_distribution_does_not_have(run: Any) -> None:
    finding = run(
        DATA
        + """
for (grade,) in DataLoader(TensorDataset(values), batch_size=12):
    torch.distributions.Categorical(logits=torch.zeros(12, 4)).log_prob(grade)
""",
        SETUP,
    ).finding
    assert finding["code"] == "TL101"
    assert finding["summary"] == (
        "Categorical.log_prob: grade[6] is 4, but Categorical has 4 classes: valid are [0, 4)"
    )
    assert finding["fix"][0].startswith("if they are counted from 1 (no 0 among 12 here), number them from 0")
    assert finding["sample"]["dataset_index"] == 6


def test_a_librarys_kind_of_tensor_makes_no_layer_the_librarys(refuse: Any) -> None:
    finding = refuse(
        "picture = torch.zeros(2, 3, 8, 12).as_subclass(checker.Labelled)\n"
        "net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.Flatten(), torch.nn.Linear(256, 2))\n"
        "net(picture[:])\n"
    ).finding
    assert finding["code"] == "TL201"
    # the argument that the line names is not what the layer got: Sequential has put its own in its place
    assert finding["summary"] == (
        "linear: the input [2, 384] has 384 features but `2` Linear(256, 2) takes 256"
    )
    assert not any("library" in line for line in finding["fix"])


def test_ctc_loss_of_a_batch_that_comes_first(run: Any) -> None:
    finding = run(
        DATA
        + """
x = torch.zeros(8, 16, 5)
for (part,) in DataLoader(TensorDataset(x), batch_size=4):
    scores = part.log_softmax(-1)
    four = torch.full((4,), 3)
    nn.CTCLoss()(scores, torch.ones(4, 3, dtype=torch.long), four, four)
""",
        SETUP,
    ).finding
    assert (finding["code"], finding["valid"]["text"]) == ("TL201", "[time, 4, classes]")
    assert finding["fix"] == ["log_probs is [time, batch, classes]: `scores.transpose(0, 1)`"]
    assert finding["sample"]["by"] == "hand" and finding["sample"]["one_of"] == [0, 1, 2, 3]


def test_an_index_that_a_sparse_product_refuses(run: Any) -> None:
    finding = run(
        DATA
        + """
places = torch.tensor([[0, 3], [0, 1]])
choice = torch.sparse_coo_tensor(places, torch.ones(2), (3, 2), check_invariants=False)
torch.dsmm(choice, torch.ones(2, 2))
""",
        SETUP,
    ).finding
    assert (finding["code"], finding["element"]["value"]) == ("TL105", 3)
    assert (finding["valid"]["min"], finding["valid"]["max"]) == (0, 2)
