"""Ranges that hold their end: what they give is one more than there are places."""

import ast

import pytest
from trapline._fault.data import ends

SCAN = {"value": 1500, "lo": 0, "hi": 1500, "max": 1500}
MADE = [{"text": "n_items"}, {"text": "n_items=n_items"}]


@pytest.fixture
def found(monkeypatch):
    def of(text, made=MADE, **scan):
        trees = [("ncf.py", ast.parse(text))]
        monkeypatch.setattr(ends.texts, "user_trees", lambda: iter(trees))
        return ends.end_facts({**SCAN, **scan}, made)

    return of


@pytest.mark.parametrize(
    ("imported", "draw"),
    [
        ("import random", "random.randint(0, self.n_items)"),
        ("import random", "random.randint(0, b=n_items)"),
        ("from random import randint", "randint(0, n_items)"),
        ("import random\nrng = random.Random(1)", "rng.randint(0, 1500)"),
        ("import numpy as np", "np.random.random_integers(0, n_items)"),
        ("import numpy as np", "rng.integers(0, n_items, endpoint=True)"),
    ],
)
def test_draws_up_to_the_number_of_places(found, imported, draw):
    lines = imported.count("\n") + 1
    assert found(f"{imported}\nx = {draw}\ny = {draw}\n") == {
        "text": draw,
        "file": "ncf.py",
        "lines": [lines + 1, lines + 2],
    }


@pytest.mark.parametrize(
    "text",
    [
        "import random\nx = random.randint(0, n_items - 1)",
        "import random\nx = random.randint(1, n_items)",  # they are counted from 1
        "import random\nx = random.randrange(0, n_items)",
        "import random\nx = random.randint(0, n_users)",
        "import numpy as np\nx = np.random.randint(0, n_items)",
        "import torch\nx = torch.randint(0, n_items, (3,))",
        "rng = np.random.default_rng(0)\nx = rng.integers(0, n_items)",
        "import random\nx = random.randint(0, n_items)\ny = random.randint(0, 1500)",  # which of them?
    ],
)
def test_others_say_nothing(found, text):
    assert found(text) is None


def test_another_number_is_bad(found):
    text = "import random\nx = random.randint(0, n_items)"
    assert found(text) is not None
    assert found(text, value=1501, max=1501) is None
    assert found(text, max=1700) is None
    assert found(text, made=[]) is None
