# Wrong: the labels come out of a table of floats and stay floats; class labels must be integers.
#
# Plain PyTorch, GPU and CPU: RuntimeError: expected target dtype to be Long or Byte, but got Float
#   (older versions: expected scalar type Long but found Float). No device-side assert.
# Trapline: TL203, target is float32, the call to add is `.long()`.
"""Train a classifier of wines from one table of numbers."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

GRADES = 4


class Wines(Dataset):
    """One float table: six measurements and, in the last column, the grade."""

    def __init__(self, whole_grades: bool, wines: int = 240, seed: int = 59) -> None:
        generator = torch.Generator().manual_seed(seed)
        grades = torch.randint(0, GRADES, (wines,), generator=generator)
        centres = 2 * torch.randn(GRADES, 6, generator=generator)
        measurements = centres[grades] + torch.randn(wines, 6, generator=generator)
        self.table = torch.cat([measurements, grades[:, None].float()], dim=1)
        self.whole_grades = whole_grades

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        row = self.table[index]
        return row[:-1], row[-1].long() if self.whole_grades else row[-1]


def build_dataset(fixed: bool) -> Dataset:
    return Wines(whole_grades=fixed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--fixed", action="store_true", help="turn the grades into integers")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, GRADES)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        total = 0.0
        for measurements, grades in loader:
            loss = criterion(model(measurements.to(device)), grades.to(device))  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
