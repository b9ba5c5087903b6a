"""What the numbers of an argument tell by themselves."""

from __future__ import annotations

import ast

import pytest

torch = pytest.importorskip("torch")

from trapline._fault.data import values  # noqa: E402
from trapline._fault.program import sole, source, texts  # noqa: E402


def masks():
    labels = torch.zeros(3, 4, 4, dtype=torch.long)
    labels[0, 1, 1] = labels[1, 2, 2] = 1
    labels[2, 3, 3] = 255
    return labels


def test_white_in_one_mask_where_others_have_a_class():
    assert values.is_of_two_colours(masks())
    with_class = masks()
    with_class[2, 0, 0] = 1  # 255 is beside it: a mark
    assert not values.is_of_two_colours(with_class)
    alone = masks()
    alone[:2] = 0  # no other mask has a 1
    assert not values.is_of_two_colours(alone)
    assert not values.is_of_two_colours(masks().reshape(-1))


def test_rows_that_add_up_to_one():
    differences = torch.tensor([[0.5, 0.7, -0.2]]).repeat(4, 1)
    assert values.sum_to_one(differences)
    assert not values.sum_to_one(differences * 2)
    assert not values.sum_to_one(differences[:2])  # too few to tell


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\nnorm = torch.sqrt(grad.square().sum())", 2),
        ("norm = grad.square().sum().sqrt()\nwide = np.sqrt(3) * math.sqrt(2)", 1),
        ("a = torch.sqrt(b)\nc = d.sqrt()", None),
        ("a = torch.log(b)", None),
    ],
)
def test_the_only_place_of_an_operation(monkeypatch, text, line):
    written_in(monkeypatch, text)
    found = sole.place("sqrt")
    assert found.get("origin", {}).get("line") == line


def written_in(monkeypatch, text):
    of_file = source.line_text
    monkeypatch.setattr(texts, "user_trees", lambda: [("main.py", ast.parse(text))])
    monkeypatch.setattr(
        source,
        "line_text",
        lambda file, number: text.splitlines()[number - 1] if file == "main.py" else of_file(file, number),
    )


DRAWN = """\
def drawn():
    return a.sqrt()
def slope(x):
    return x.sqrt()
def penalty(x):
    return slope(x)
"""


def test_of_several_places_the_one_that_the_running_function_may_reach(monkeypatch):
    def penalty(x):
        return sole.place("sqrt").get("origin", {}).get("line") if x is None else slope(x)  # noqa: F821

    written_in(monkeypatch, DRAWN)
    assert penalty(None) == 4
    written_in(monkeypatch, DRAWN + "def slope(x):\n    return x.sqrt() + 1\n")
    assert penalty(None) is None  # which of them?
