"""Small functions that are compiled by the tests. Each says with `# <- here` where its mistake is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


def line_of(marker: str) -> int:
    """The number of the line that ends in the marker."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    found = [n for n, text in enumerate(lines, 1) if text.endswith(f"# <- {marker}")]
    assert len(found) == 1, (marker, found)
    return found[0]


class Classifier(nn.Module):
    """Words to one of seven classes."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(10, 4)
        self.body = nn.Linear(4, 7)
        self.head = nn.Linear(7, 5)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        hidden = self.words(words).mean(dim=1)  # <- word
        return self.head(self.body(hidden).relu())


def step(model: nn.Module, words: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """What a user compiles to have model and loss in one graph."""
    scores = model(words)
    return F.cross_entropy(scores, labels, ignore_index=-1)  # <- label


def first_pick(scores: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """The same graph as second_pick."""
    return scores.gather(1, index) * 2  # <- first


def second_pick(scores: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """The same graph as first_pick."""
    return scores.gather(1, index) * 2  # <- second


def by_age(age: torch.Tensor, effect: torch.Tensor) -> torch.Tensor:
    """A NaN becomes an integer, and the integer an index."""
    group = (age / 10).long()  # <- cast
    return effect[group] * 2  # <- use


def hidden_cast(value: torch.Tensor) -> torch.Tensor:
    """A cast that no index depends on."""
    return value.to(torch.int8).to(torch.float32) * 0.5


class Block(nn.Module):
    """One of several equal parts of a model."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.Embedding(6, 4)
        self.linear = nn.Linear(4, 4)

    def forward(self, hidden: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return self.linear(hidden) + self.offset(index)  # <- block


class Blocks(nn.Module):
    """A model whose blocks are compiled, not the model."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, hidden: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        for number, block in enumerate(self.blocks):
            hidden = block(hidden, index + 3 * (number == 1))
        return hidden


def after_a_break(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Dynamo compiles the rest of this function as a function of its own."""
    doubled = values * 2
    print(end="")
    return doubled[index]  # <- resumed


def mask_and_index(values: torch.Tensor, mask: torch.Tensor, index: torch.Tensor) -> Any:
    """An index list with None, with a mask, with negative numbers."""
    return values[index, None, index], torch.where(mask, values[index].sum(), 0.0), values[:, index - 4]


def assign(values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """x[i] = v"""
    values = values.clone()
    values[index] = 1.0  # <- assign
    return values * 2
