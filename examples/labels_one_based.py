# Wrong: the species are numbered 1..10 as in the table they come from; cross entropy counts classes
#   from 0.
#
# Plain PyTorch, GPU: nll_loss_forward_reduce_cuda_kernel_2d ... Assertion `t >= 0 && t < n_classes`
#   failed. Species 1 to 9 train without a word, as the wrong class.
# Plain PyTorch, CPU: IndexError: Target 10 is out of bounds.
# Trapline: TL101, target[row] = 10, valid [0, 10), "labels look 1-based", head.2 has 10 outputs.
"""Train a classifier of flower measurements: 10 species, numbered by a botanist."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECIES = 10


class Flowers(Dataset):
    """Rows of (petal and sepal measurements, species number), as read from a spreadsheet."""

    def __init__(self, zero_based: bool, rows: int = 400, seed: int = 11) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.species = torch.randint(1, SPECIES + 1, (rows,), generator=generator)
        centres = 3 * torch.randn(SPECIES + 1, 8, generator=generator)
        self.measurements = centres[self.species] + torch.randn(rows, 8, generator=generator)
        self.first_number = 1 if zero_based else 0

    def __len__(self) -> int:
        return len(self.species)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.measurements[index], int(self.species[index]) - self.first_number


class FlowerNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, SPECIES))

    def forward(self, measurements: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(measurements))


def build_dataset(fixed: bool) -> Dataset:
    return Flowers(zero_based=fixed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--fixed", action="store_true", help="number the species from 0")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    loader = DataLoader(build_dataset(args.fixed), batch_size=16, shuffle=True)
    model = FlowerNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    for epoch in range(args.epochs):
        total = 0.0
        for measurements, species in loader:
            logits = model(measurements.to(device))
            loss = F.cross_entropy(logits, species.to(device))  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
