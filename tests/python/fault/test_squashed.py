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
        (lambda: 1 - (A - B).norm(dim=-1), "difference"),
        (lambda: F.log_softmax(A, -1), "log"),
        (lambda: F.logsigmoid(A), "log"),
        (lambda: nn.Linear(3, 1)(A).squeeze(-1), "raw"),
        (lambda: nn.Linear(3, 2)(A.unsqueeze(0))[..., 0], "raw"),
        (lambda: nn.Conv1d(4, 2, 1)(A.unsqueeze(0)).flatten(), "raw"),
        (lambda: nn.Linear(3, 1, bias=False)(A) + 0.5, "raw"),
        (lambda: (A * B).sum(-1), "raw"),
        (lambda: A @ B.T, "raw"),
        (lambda: torch.sigmoid(nn.Linear(3, 1)(A)).squeeze(1) / torch.rand(4), "quotient"),
        (lambda: A / B, "quotient"),
        (lambda: nn.Linear(3, 1)(A).squeeze(1) / 0.7, "raw"),
        (lambda: torch.sigmoid(A) - torch.sigmoid(nn.Linear(3, 3)(B)).mean(), "past_sigmoid"),
        (lambda: torch.softmax(A, -1) * 1.2, "past_sigmoid"),
        (
            lambda: nn.Linear(3, 1)(torch.sigmoid(A)).squeeze(-1) - nn.Linear(3, 1)(torch.sigmoid(B)).mean(),
            None,
        ),
        (lambda: A - B, None),
        (lambda: nn.functional.layer_norm(A, [3]), None),
        (lambda: A, None),
        (lambda: B, None),
    ],
)
def test_what_made_them(scores, by):
    assert squashed_by(scores()) == by


def test_one_less_an_exponential():
    rate = torch.tensor([0.5, -0.2], requires_grad=True)
    assert squashed_by(1 - torch.exp(-rate)) == "one_less_exp"
    assert squashed_by(1.0 - rate.cumsum(-1)) == "one_less_sum"
    assert squashed_by(1.0 - rate.sum(-1)) == "difference"  # a distance, as a rule
    assert squashed_by(1 - rate * 2) == "difference"
