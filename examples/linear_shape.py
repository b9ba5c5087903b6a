# Wrong: the first layer after `flatten` was copied from a network for 32 x 32 images (16 * 5 * 5
#   features); these images are 28 x 28, which leaves 16 * 4 * 4.
#
# Plain PyTorch, GPU and CPU: RuntimeError: mat1 and mat2 shapes cannot be multiplied (20x256 and
#   400x120)
# Trapline: TL201, the module `classifier.0` with its in_features and the number it would need.
"""Train LeNet on 28 x 28 digits."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    """Ten blurred patterns with noise."""

    def __init__(self, digits: int = 300, size: int = 28, seed: int = 53) -> None:
        generator = torch.Generator().manual_seed(seed)
        patterns = F.interpolate(torch.randn(10, 1, 7, 7, generator=generator), size=size, mode="bilinear")
        self.labels = torch.randint(0, 10, (digits,), generator=generator)
        self.images = patterns[self.labels] + 0.3 * torch.randn(digits, 1, size, size, generator=generator)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index], self.labels[index]


class LeNet(nn.Module):
    def __init__(self, flat_features: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.classifier = nn.Sequential(
            nn.Linear(flat_features, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(images)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.classifier(torch.flatten(x, 1))  # <- here


def build_dataset(fixed: bool) -> Dataset:
    return Digits()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--fixed", action="store_true", help="give the first linear layer 16 * 4 * 4 inputs")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=20, shuffle=True)
    model = LeNet(flat_features=16 * 4 * 4 if args.fixed else 16 * 5 * 5).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    for epoch in range(args.epochs):
        total = 0.0
        for images, labels in loader:
            loss = F.cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
