"""PyTorch's generator, wound back by as many numbers as a run of statements draws."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from trapline._fault.replay import rewind  # noqa: E402


def after(state, draw):
    generator = torch.Generator().set_state(state)
    return draw(generator), generator.get_state()


@pytest.mark.parametrize("before", [0, 3, 10, 623, 624, 625, 5000])
@pytest.mark.parametrize("count", [1, 2, 17, 624, 2000])
def test_the_same_numbers_come_again(before, count):
    generator = torch.Generator().manual_seed(3)
    torch.rand(before, generator=generator)
    drawn, now = after(generator.get_state(), lambda g: torch.rand(count, generator=g))
    _, later = after(now, lambda g: torch.rand(count, generator=g))
    again, end = after(rewind.rewound(now, later), lambda g: torch.rand(count, generator=g))
    assert torch.equal(again, drawn)
    assert torch.equal(end, now)


def test_of_several_kinds():
    def draw(generator):
        return [
            torch.randn(20, 3, generator=generator),
            torch.randint(0, 9, (5,), generator=generator),
            torch.randperm(11, generator=generator),
        ]

    drawn, now = after(torch.Generator().manual_seed(1).get_state(), draw)
    _, later = after(now, draw)
    again, _ = after(rewind.rewound(now, later), draw)
    assert all(map(torch.equal, again, drawn))


def test_where_nothing_was_drawn_or_the_seed_is_new():
    state = torch.Generator().manual_seed(1).get_state()
    assert rewind.rewound(state, state) is None
    assert rewind.rewound(state, torch.Generator().manual_seed(2).get_state()) is None
    assert rewind.rewound(state[:100], state) is None
