# Wrong: the catalogue grew to 508 items after the table was made for 500.
#
# Plain PyTorch, GPU: older versions read past the end of the table WITHOUT any message; newer ones
#   say EmbeddingBag.cu ... "Invalid input index in EmbeddingBag: index out of range [0, numRows)".
# Plain PyTorch, CPU: RuntimeError: Expected i < index_size to be true, but got false.
# Trapline: TL103, the item id and its place, `items` EmbeddingBag (500 rows) and how many it needs.
"""Train a recommender: does a visitor who looked at five items buy?"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TABLE_ROWS, CATALOGUE = 500, 508


class Visits(Dataset):
    """Five item ids per visit; the newest items were looked at in two visits only."""

    def __init__(self, visits: int = 400, seed: int = 37) -> None:
        generator = torch.Generator().manual_seed(seed)
        appeal = torch.randn(CATALOGUE, generator=generator)
        self.items = torch.randint(0, TABLE_ROWS, (visits, 5), generator=generator)
        self.items[123, 2] = 505
        self.items[317, 4] = CATALOGUE - 1
        self.bought = (appeal[self.items].mean(dim=1) > 0).float()

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.items[index], self.bought[index]


class Recommender(nn.Module):
    def __init__(self, rows: int) -> None:
        super().__init__()
        self.items = nn.EmbeddingBag(rows, 16, mode="mean")
        self.top = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        return self.top(self.items(items)).squeeze(1)  # <- here


def build_dataset(fixed: bool) -> Dataset:
    return Visits()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--fixed", action="store_true", help="make the table as large as the catalogue")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=25, shuffle=True)
    model = Recommender(rows=CATALOGUE if args.fixed else TABLE_ROWS).to(device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)

    for epoch in range(args.epochs):
        total = 0.0
        for items, bought in loader:
            score = model(items.to(device))
            loss = F.binary_cross_entropy_with_logits(score, bought.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
