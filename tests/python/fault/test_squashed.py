"""Scores that are no raw ones, by their graph."""

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from trapline._fault.model.squashed import squashed_by  # noqa: E402

A, B = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3)


@pytest.mark.parametrize(
    ("scores", "by"),
    [
        (lambda: F.cosine_similarity(A, B), "cosine"),
        (lambda: nn.CosineSimilarity()(A, B).unsqueeze(1), "cosine"),
        (lambda: (F.normalize(A, dim=-1) * F.normalize(B, dim=-1)).sum(-1), "cosine"),
        (lambda: F.normalize(A, dim=-1) @ F.normalize(B, dim=-1).T, "cosine"),
        (lambda: torch.tanh(A).squeeze(-1), "tanh"),
        (lambda: F.log_softmax(A, -1), "log"),
        (lambda: F.logsigmoid(A), "log"),
        (lambda: nn.Linear(3, 1)(A).squeeze(-1), None),
        (lambda: (A * B).sum(-1), None),
        (lambda: A @ B.T, None),
        (lambda: A, None),
        (lambda: B, None),
    ],
)
def test_what_made_them(scores, by):
    assert squashed_by(scores()) == by
