"""The statement that made a NaN, followed through the variables: only where all it was given is finite."""

from __future__ import annotations

import math
from typing import Any, Optional

import pytest

torch = pytest.importorskip("torch")
from trapline._fault.model import nans  # noqa: E402
from trapline._fault.program import arisen, written  # noqa: E402


def told(numbers: Any) -> Optional[dict[str, Any]]:
    return arisen.made()


def test_the_assignment_whose_variables_are_finite() -> None:
    priorities, alpha = torch.tensor([0.5, -0.2, 1.0]), 0.6
    weights = priorities**alpha
    found = told(weights)
    assert found is not None
    assert (found["op"], found["name"], found["text"]) == ("pow", "weights", "priorities ** alpha")
    assert found["origin"]["code"].strip() == "weights = priorities**alpha"


def test_what_handed_it_on_is_not_the_one() -> None:
    total = torch.tensor([0.0, 2.0])
    share = torch.tensor([0.0, 1.0]) / total
    scaled = share * 3 + 1
    found = told(scaled.reshape(-1))
    assert found is not None and (found["name"], found["op"]) == ("share", "div")


def test_the_caller_made_it() -> None:
    def draw(given: torch.Tensor) -> Optional[dict[str, Any]]:
        return told(given)

    counts = torch.tensor([4.0, -1.0])
    logged = torch.log(counts)
    found = draw(logged)
    assert found is not None and (found["name"], found["op"]) == ("logged", "log")


def test_nothing_of_data_that_hold_it() -> None:
    record = torch.tensor([1.0, math.nan])
    scaled = record / torch.tensor([2.0, 2.0])
    assert told(scaled) is None


def test_nothing_where_a_variable_has_changed_since() -> None:
    scale = torch.tensor([0.0, 1.0])
    made = torch.tensor([0.0, 1.0]) / scale
    scale = torch.ones(2)
    assert told(made) is None
    assert bool(scale.isfinite().all())


def test_nothing_where_two_operations_may_be_the_one() -> None:
    x = torch.tensor([-1.0, 0.5])
    y = torch.sqrt(x) / torch.log(x)
    assert told(y) is None


def angle(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    cosine = one * other
    return 1 - torch.acos(cosine) / math.pi


def test_the_graph_names_the_operation_and_the_source_its_line() -> None:
    one = torch.tensor([1.1, 0.2], requires_grad=True)
    score = angle(one, torch.ones(2))

    def lose(given: torch.Tensor) -> Optional[dict[str, Any]]:
        return nans._made(given)

    found = lose(score)
    assert found is not None and found["op"] == "acos"
    assert found["text"] == "torch.acos(cosine)"
    assert found["origin"]["code"].strip() == "return 1 - torch.acos(cosine) / math.pi"


def test_the_graph_alone_where_the_source_does_not_say() -> None:
    def twice(one: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(one) + torch.sqrt(one - 2)

    score = twice(torch.tensor([1.0, 3.0], requires_grad=True))
    assert nans._made(score) == {"op": "sqrt"}


def spread(raw: torch.Tensor) -> torch.Tensor:
    square = raw.pow(2).mean(1) - raw.mean(1).pow(2)
    return torch.sqrt(square - 1e-3)


def test_a_division_by_a_number_is_not_the_one() -> None:
    raw, full_scale = torch.full((2, 8), 0.3), 16.0
    rate = spread(raw) / full_scale
    found = told(rate)
    assert found is not None
    assert (found["op"], found["name"]) == ("spread", "rate")  # which of its operations is not known


def test_nothing_where_a_library_was_called() -> None:
    x = torch.tensor([-1.0, 2.0])
    made = torch.special.xlogy(x, x) / torch.tensor([1.0, 2.0])
    assert told(made) is None


def test_where_the_program_writes_gradients_before_the_step() -> None:
    def normalize(parameters: list[torch.Tensor]) -> None:
        for p in parameters:
            assert p.grad is not None
            p.grad.mul_(2.0)

    weight = torch.ones(2, requires_grad=True)
    weight.sum().backward()
    normalize([weight])
    found = written.gradients()
    assert found["origin"]["code"].strip() == "p.grad.mul_(2.0)"


def test_two_places_that_write_gradients_are_none() -> None:
    weight = torch.ones(2, requires_grad=True)
    weight.sum().backward()
    assert weight.grad is not None
    weight.grad /= 2
    weight.grad.add_(1.0)
    assert written.gradients() == {}


def test_what_a_mask_leaves_nothing_of_is_made_of_infinities() -> None:
    logits, taken = torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool)
    pi = torch.softmax(logits.masked_fill(taken, float("-inf")), dim=-1)
    found = told(pi)
    assert found is not None and (found["op"], found["finite"]) == ("softmax", False)
    pi = torch.softmax(logits / 0, dim=-1)
    assert "finite" not in (told(pi) or {})
