"""A buffer that was not finite when it was made: where, by which line, and which sample reads it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402


def table():
    """The third of these has no half-life."""
    life = torch.arange(1.0, 33.0)
    life[2] = float("inf")
    return torch.stack([life / 10, life / (life + 1)], 1)


class Decays(nn.Module):
    def __init__(self, held):
        super().__init__()
        self.register_buffer("props", held)
        self.head = nn.Linear(2, 1)

    def forward(self, kinds, speed):
        return self.head(self.props[kinds] * speed.unsqueeze(-1)).sum(1)


class Made(Decays):
    def __init__(self):
        nn.Module.__init__(self)
        self.register_buffer("props", table())
        self.head = nn.Linear(2, 1)


def train(model, kinds, batch=4):
    speed = torch.rand(kinds.shape)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for start in range(0, len(kinds), batch):
        part = slice(start, start + batch)
        optimizer.zero_grad()
        model(kinds[part], speed[part]).square().mean().backward()
        optimizer.step()


def test_the_place_the_line_and_the_sample(watch):
    torch.manual_seed(0)
    kinds = torch.randint(3, 32, (40, 3))
    kinds[29, 1] = 2
    train(Made(), kinds)
    seen = watch.verdict()
    assert (seen["kind"], seen["name"], seen["step"]) == ("weights", "props", 8)
    assert (seen["since_made"], seen["at"], seen["bad"], seen["total"]) == (True, [2, 0], 2, 64)
    assert (seen["text"], seen["origin"]["code"].strip()) == (
        "table()",
        'self.register_buffer("props", table())',
    )
    assert (seen["sample"]["dataset_index"], seen["sample"]["row"]) == (29, 1)


def test_one_that_was_written_since_is_told_as_before(watch):
    model = Decays(torch.ones(4, 2))
    model.props[2] = float("nan")
    train(model, torch.full((8, 3), 2))
    seen = watch.verdict()
    assert (seen["kind"], seen["name"], "since_made" in seen) == ("weights", "props", False)
