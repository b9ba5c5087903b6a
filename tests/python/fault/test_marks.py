"""The one place of the program that writes a number which stands for nothing."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import ast

from trapline._fault.program import marks, texts

LETTERS = "ids = [letters.find(c) for c in name]\nsize = len(letters)\n"


def written(monkeypatch, lines, number=-1):
    monkeypatch.setattr(texts, "user_trees", lambda: [("d.py", ast.parse(lines))])
    found = marks.only_writer(number)
    return None if found is None else (found["text"], found["line"], found["of"])


@pytest.mark.parametrize(
    ("lines", "text", "of"),
    [
        ("lut = np.full(256, -1)\n", "lut = np.full(256, -1)", "fill"),
        ("lut = torch.full((3, 4), fill_value=-1)\n", "lut = torch.full((3, 4), fill_value=-1)", "fill"),
        ("y[far] = -1\n", "y[far] = -1", "fill"),
        ("y = -torch.ones(8)\n", "y = -torch.ones(8)", "fill"),
        ("y = [-1] * 8\n", "y = [-1] * 8", "fill"),
        ("y = np.where(near, ids, -1)\n", "y = np.where(near, ids, -1)", "fill"),
        ("y = df['y'].fillna(-1)\n", "y = df['y'].fillna(-1)", "fill"),
        ("y = pad_sequence(rows, padding_value=-1)\n", "y = pad_sequence(rows, padding_value=-1)", "fill"),
        ("f([tags.get(t, -1) for t in row])\n", "tags.get(t, -1)", "nothing"),
        ("enc = OrdinalEncoder(unknown_value=-1)\n", "enc = OrdinalEncoder(unknown_value=-1)", "nothing"),
        ("ids = defaultdict(lambda: -1)\n", "ids = defaultdict(lambda: -1)", "nothing"),
        ("y = hit[2] if hit else -1\n", "y = hit[2] if hit else -1", "fill"),
        ("def find_it(x):\n    if x:\n        return x.id\n    return -1\n", "return -1", "fill"),
        ("IGNORE = -1\ny = [IGNORE] * 3 + [IGNORE] * n\n", "IGNORE = -1", "name"),
        ("class Vote:\n    ABSTAIN: int = -1\ny[i] = ABSTAIN\n", "ABSTAIN: int = -1", "name"),
        (LETTERS, "letters.find(c)", "nothing"),
    ],
)
def test_the_only_one(monkeypatch, lines, text, of):
    found = written(monkeypatch, lines)
    assert (found[0], found[2]) == (text, of)
    assert written(monkeypatch, lines + "mask = np.full(8, -1)\n") is None  # which of them?


@pytest.mark.parametrize(
    "lines",
    [
        "x = x.sum(dim=-1)[..., -1].view(-1)\n",
        "for i in range(8, -1, -1): pass\n",
        "sign = 1 if up else -1\n",
        "def compare(a, b):\n    if a > b:\n        return 1\n    return -1\n",
        "DIM = -1\nx = x.softmax(DIM)\n",  # nowhere stored
        "best = -1\n",
        "y = classes.get(name, 0)\n",
        "y = classes.get(name)\n",
        "at = path.find(sep)\nsize = len(classes)\n",  # of another thing
        "at = text.find('abc')\nsize = len(text)\n",  # of a part of a text
        "y = letters.find(c, 3)\nsize = len(letters)\n",
        "y = letters.rfind(c)\n" + LETTERS,  # which of them?
    ],
)
def test_what_writes_none(monkeypatch, lines):
    assert written(monkeypatch, lines) is None


def test_other_numbers(monkeypatch):
    lines = "VOID = 255\nmask = np.full((8, 8), VOID)\nmask[edge] = VOID\nother = np.full(8, -1)\n"
    assert written(monkeypatch, lines, 255) == ("VOID = 255", 1, "name")
    assert written(monkeypatch, lines, -100) is None


def test_a_number_that_is_beyond_all_others(monkeypatch):
    lines = "OTHER = 99\ndef kind(s):\n    return KINDS.index(s) if s in KINDS else OTHER\n"
    assert written(monkeypatch, lines, 99) == ("OTHER = 99", 1, "name")
    assert written(monkeypatch, "parser.add_argument('--rows', default=999)\n", 999) is None
    assert [number for number in range(2000) if marks.is_usual(number)] == [99, 255, 511, 999, 1023]


def test_a_constant_that_is_given_twice_is_none(monkeypatch):
    assert written(monkeypatch, "PAD = 0\nPAD = -1\ny = [PAD] * 3\n") is None
