"""Text beyond the position table, in a model that keeps a buffer as long as the table: TL104, not a shape."""

from __future__ import annotations

from typing import Any

SETUP = "import torch\nfrom trapline._exceptions import hooks\nhooks.install()\n"
MODEL = """
import torch
from torch import nn

class Config:
    max_position_embeddings = 64
    def __init__(self):
        self.max_position_embeddings = 64

class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.words = nn.Embedding(100, 8)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, 8)
        self.token_types = nn.Buffer(torch.zeros(1, 64, dtype=torch.long))

    def forward(self, input_ids):
        types = self.token_types[:, : input_ids.shape[1]].expand(*input_ids.shape)
        return self.words(input_ids) + types.unsqueeze(-1)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config()
        self.embeddings = Embeddings(self.config)

    def forward(self, input_ids):
        return self.embeddings(input_ids)

Model()(torch.zeros(8, LENGTH, dtype=torch.long))
"""


def test_the_text_is_too_long(run: Any) -> None:
    finding = run(MODEL.replace("LENGTH", "80"), SETUP).finding
    assert finding["code"] == "TL104"
    assert finding["summary"] == (
        "the text has 80 tokens, but the position table `embeddings.position_embeddings` has 64 rows"
        " (max_position_embeddings=64)"
    )
    assert "max_length=64" in finding["fix"][0]
    assert finding["layer"]["name"] == "embeddings.position_embeddings"


# The table is a parameter of its own, of which the forward adds a slice (Whisper, TransformerLens).
SLICED = """
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 8)
        self.positional_embedding = nn.Parameter(torch.zeros(48, 8))

    def forward(self, x):
        return self.words(x) + self.positional_embedding[: x.shape[-1]]

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = Decoder()

    def forward(self, tokens):
        return self.decoder(tokens)

Model()(torch.zeros(4, LENGTH, dtype=torch.long))
"""


def test_the_table_may_be_a_parameter(run: Any) -> None:
    finding = run(SLICED.replace("LENGTH", "70"), SETUP).finding
    assert finding["code"] == "TL104"
    assert finding["summary"] == (
        "the text has 70 tokens, but the position table `decoder.positional_embedding` has 48 rows"
    )
    assert "max_length=48" in finding["fix"][0]
    assert finding.get("layer") is None


def test_a_text_that_fits_is_no_finding(run: Any) -> None:
    assert run(MODEL.replace("LENGTH", "64"), SETUP).reports == []


def test_a_text_that_fits_the_parameter_is_no_finding(run: Any) -> None:
    assert run(SLICED.replace("LENGTH", "48"), SETUP).reports == []
