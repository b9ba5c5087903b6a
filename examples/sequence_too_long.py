# Wrong: one document has 80 tokens, the model's position table has 64 rows. Every token id is fine.
#
# Plain PyTorch, GPU: indexSelectSmallIndex / vectorized_gather_kernel "index out of bounds", the
#   same text as for a bad token id.
# Plain PyTorch, CPU: IndexError: index out of range in self
# Trapline: TL104, `position` Embedding (64 rows), the sequence has 80; the token table is not
#   blamed.
"""Train a small GPT on documents of different lengths."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCABULARY, BLOCK_SIZE, PADDING = 60, 64, -100


class Documents(Dataset):
    """Token sequences that count upwards from a random start; document 50 is longer than the others."""

    def __init__(self, limit: int, documents: int = 96, seed: int = 17) -> None:
        generator = torch.Generator().manual_seed(seed)
        lengths = torch.randint(20, 40, (documents,), generator=generator)
        lengths[50] = 81
        starts = torch.randint(0, VOCABULARY, (documents,), generator=generator)
        self.tokens = [(torch.arange(int(n)) + s) % VOCABULARY for n, s in zip(lengths, starts)]
        self.limit = limit

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.tokens[index][: self.limit]


def collate(batch: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    pad = nn.utils.rnn.pad_sequence
    return (
        pad([tokens[:-1] for tokens in batch], batch_first=True),
        pad([tokens[1:] for tokens in batch], batch_first=True, padding_value=PADDING),
    )


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return x + self.mlp(self.norm2(x))


class SmallGPT(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, width)
        self.position = nn.Embedding(BLOCK_SIZE, width)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.lm_head = nn.Linear(width, VOCABULARY)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(ids.size(1), device=ids.device)
        x = self.token(ids) + self.position(positions)  # <- here
        return self.lm_head(self.blocks(x))


def build_dataset(fixed: bool) -> Dataset:
    return Documents(limit=BLOCK_SIZE if fixed else 10**6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--fixed", action="store_true", help="cut documents to the position table")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=8, shuffle=True, collate_fn=collate)
    model = SmallGPT().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    for epoch in range(args.epochs):
        total = 0.0
        for ids, following in loader:
            logits = model(ids.to(device))
            loss = F.cross_entropy(logits.flatten(0, 1), following.to(device).flatten(), ignore_index=PADDING)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
