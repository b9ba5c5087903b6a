"""Where labels are filled with the number of classes, and what else such a number decides."""

from __future__ import annotations

import ast

import pytest

pytest.importorskip("torch")
from trapline._fault.program import decided, filled, texts

MADE = [{"text": "self.num_classes", "file": "net.py", "line": 3}]


@pytest.fixture
def program(monkeypatch):
    def of(text):
        monkeypatch.setattr(texts, "user_trees", lambda: [("net.py", ast.parse(text))])

    return of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("t = torch.full((n,), self.num_classes)", "torch.full((n,), self.num_classes)"),
        (
            "t = x.new_full(x.shape, fill_value=cfg.num_classes)",
            "x.new_full(x.shape, fill_value=cfg.num_classes)",
        ),
        ("t[~matched] = num_classes", "t[~matched] = num_classes"),
        ("t = torch.where(hit, t, num_classes)", "torch.where(hit, t, num_classes)"),
        ("t = [index.get(w, num_classes) for w in words]", "index.get(w, num_classes)"),
        ("t = index[w] if w in index else self.num_classes", "index[w] if w in index else self.num_classes"),
        ("t = torch.full((n,), 0)", None),
        ("t = torch.full((n,), width)", None),
        ("t = torch.full((n,), num_classes)\nu[k] = num_classes", None),  # which of them?
    ],
)
def test_the_only_one(program, text, found):
    program(text)
    told = filled.filled_with(MADE)
    assert (told and told["text"]) == found


def test_what_no_name_made_is_not_looked_for(program):
    program("t = torch.full((n,), 5)")
    assert filled.filled_with([{"text": "5", "file": "net.py", "line": 3}]) is None
    assert filled.filled_with([]) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\ntokens = tokens[:MAX_LEN]", 2),
        ("trainer = BpeTrainer(vocab_size=cfg.vocab_size)", 1),
        ("tok.train_from_iterator(rows, vocab_size=vocab_size)", 1),
        ("head = nn.Linear(d, cfg.vocab_size)", None),
        ("logits.view(-1, vocab_size)", None),
        ("x = x[MAX_LEN]", None),
        ("ids = hashed % vocab_size + 1", 1),
        ("part = int(share * MAX_LEN)", 1),
        ("for n in range(MAX_LEN + 1):\n    pass", 1),
        ("\n" * 8 + "table = nn.Embedding(vocab_size * 2, d)", None),  # the layer itself
    ],
)
def test_what_else_changes_with_it(program, text, line):
    program(text)
    told = decided.by_it(["", "MAX_LEN", "vocab_size", "for n in"], {("net.py", 9)})
    assert told == ({} if line is None else {"read": {"file": "net.py", "line": line}})


def test_a_variable_of_a_function_is_read_in_that_function_alone(monkeypatch):
    text = """
def windows(x, window):
    h, w = window
    return x.view(h // 2, h * w)

class Bias:
    def __init__(self, window):
        h, w = window
        self.table = Embedding((2 * h - 1) * (2 * w - 1), 4)
"""
    tree = ast.parse(text)
    monkeypatch.setattr(texts, "user_trees", lambda: [("net.py", tree)])
    function = tree.body[1].body[0]
    assert decided.by_it(["h", "w"], {("net.py", 9)}, function) == {}
    assert decided.by_it(["h", "w"], {("net.py", 9)}) == {"read": {"file": "net.py", "line": 4}}


def test_a_variable_that_only_has_the_name_is_another(program):
    program("def pairs(table):\n    n_roles = len(table)\n    return 2 * n_roles\n")
    assert decided.by_it(["n_roles"], set()) == {}
    program("def pairs(cfg):\n    n_roles = cfg.n_roles\n    return 2 * n_roles\n")
    assert decided.by_it(["n_roles"], set()) == {"read": {"file": "net.py", "line": 3}}


def test_a_parameter_that_no_call_gives_it_is_another(program):
    text = (
        "def ratings(n_items=1500):\n    return list(range(n_items))\n{}\ntable = nn.Embedding(n_items, 8)\n"
    )
    program(text.format("frame, n_items = ratings()"))
    assert decided.by_it(["n_items"], {("net.py", 4)}) == {}
    program(text.format("frame = ratings(n_items)"))
    assert decided.by_it(["n_items"], {("net.py", 4)}) == {"read": {"file": "net.py", "line": 2}}
