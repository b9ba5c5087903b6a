"""Which statement of the program's takes 1 off a mask."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
from trapline._fault.program import texts


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
