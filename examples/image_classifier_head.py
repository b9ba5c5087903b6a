# Wrong: the data has 196 classes (0..195), the last layer `fc.5` has 195 outputs.
#
# Plain PyTorch, GPU: Loss.cu ... nll_loss_forward_reduce_cuda_kernel_2d ... Assertion `t >= 0 && t
#   < n_classes` failed, then `CUDA error: device-side assert triggered` at a later line; the
#   process cannot use the GPU again.
# Plain PyTorch, CPU: IndexError: Target 195 is out of bounds.
# Trapline: TL102, target[row] = 195, valid [0, 195), fc.5 needs 196, and the number of the image.
"""Train a small convolutional network with a new head on 196 car models."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CAR_MODELS = 196


class CarImages(Dataset):
    """Synthetic photographs: each car model has its own pattern, plus noise. The last model is rare."""

    def __init__(self, photographs: int = 640, seed: int = 7) -> None:
        generator = torch.Generator().manual_seed(seed)
        patterns = torch.randn(CAR_MODELS, 3, 16, 16, generator=generator)
        self.labels = torch.randint(0, CAR_MODELS - 1, (photographs,), generator=generator)
        self.labels[photographs // 2 + 21] = CAR_MODELS - 1
        self.labels[photographs // 2 + 99] = CAR_MODELS - 1
        self.images = patterns[self.labels] + 0.3 * torch.randn(photographs, 3, 16, 16, generator=generator)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index], self.labels[index]


class CarNet(nn.Module):
    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )
        self.fc = nn.Sequential(
            nn.Linear(512, 300),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(300, 300),
            nn.ReLU(),
            nn.Linear(300, outputs),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.fc(self.features(images))


def build_dataset(fixed: bool) -> Dataset:
    return CarImages()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--fixed", action="store_true", help="give the head one output per car model")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=32, shuffle=True)
    model = CarNet(outputs=CAR_MODELS if args.fixed else CAR_MODELS - 1).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        total = 0.0
        for images, labels in loader:
            logits = model(images.to(device))
            loss = criterion(logits, labels.to(device))  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
