# Wrong: the model returns one score per row as [N, 1], the targets are [N].
#
# Plain PyTorch, GPU and CPU: ValueError: Target size (torch.Size([16])) must be the same as input
#   size (torch.Size([16, 1])). Often taken for the cause of a device-side assert; it is none.
# Trapline: TL201, both shapes, and `squeeze(1)` as the call that fits.
"""Train a spam filter with one output."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Mails(Dataset):
    """Counts of suspicious words, and whether the mail was spam."""

    def __init__(self, mails: int = 320, seed: int = 47) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.spam = torch.randint(0, 2, (mails,), generator=generator).float()
        rate = 0.5 + 2.0 * self.spam[:, None] * torch.rand(20, generator=generator)
        self.counts = torch.poisson(rate, generator=generator)

    def __len__(self) -> int:
        return len(self.spam)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.counts[index], self.spam[index]


class SpamFilter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(20, 32), nn.ReLU())
        self.score = nn.Linear(32, 1)

    def forward(self, counts: torch.Tensor) -> torch.Tensor:
        return self.score(self.hidden(counts))


def build_dataset(fixed: bool) -> Dataset:
    return Mails()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--fixed", action="store_true", help="drop the output's dimension of size 1")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=16, shuffle=True)
    model = SpamFilter().to(device)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        total = 0.0
        for counts, spam in loader:
            scores = model(counts.to(device))
            if args.fixed:
                scores = scores.squeeze(1)
            loss = criterion(scores, spam.to(device))  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
