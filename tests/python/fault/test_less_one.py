"""Which statement of the program takes a number off a mask or labels."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import ast

from trapline._fault.program import taken_off, texts


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("        mask = mask - 1\n", "mask = mask - 1"),
        ("seg_map -= 1  # from 1\n", "seg_map -= 1"),
        ("mask = mask - 1\nlabel = label - 1\n", None),  # which of them?
        ("label[label == 0] = 255\nlabel = label - 1\nlabel[label == 254] = 255\n", None),  # ADE20K
        ("mask = mask - 1\nimage = image / 255.0\n", "mask = mask - 1"),
        ("mask = other - 1\n", None),
        ("count = count - 1\n", None),
        ("mask = mask - 10\n", None),
    ],
)
def test_the_only_one(monkeypatch, lines, text):
    monkeypatch.setattr(texts, "user_files", lambda: ["tiles.py"])
    monkeypatch.setattr(texts.source, "text", lambda file: "import torch\n" + lines)
    found = texts.less_one()
    assert found == (None if text is None else {"text": text, "file": "tiles.py", "line": 2})


@pytest.mark.parametrize(
    ("lines", "text", "number"),
    [
        ("labels = epochs.events[:, -1] - 2\n", "labels = epochs.events[:, -1] - 2", 2),
        ("self.target = torch.tensor(rows['y'] - 3)\n", "self.target = torch.tensor(rows['y'] - 3)", 3),
        ("y = (grade - 4).long()\n", "y = (grade - 4).long()", 4),
        ("item['label'] = int(row[2]) - 1\n", "item['label'] = int(row[2]) - 1", 1),
        ("label -= 2\n", "label -= 2", 2),
        ("labels = a - 2\ntarget = b - 2\n", None, 0),  # which of them?
        ("labels = a - b\n", None, 0),
        ("labels = a - 2.5\n", None, 0),
        ("width = a - 2\n", None, 0),
        ("labels = a + 2\n", None, 0),
    ],
)
def test_what_takes_a_number_off_labels(monkeypatch, lines, text, number):
    monkeypatch.setattr(texts, "user_trees", lambda: [("d.py", ast.parse("import torch\n" + lines))])
    found = taken_off.from_labels()
    assert found == (None if text is None else {"text": text, "file": "d.py", "line": 2, "number": number})
