# Wrong: unlabelled pixels are -1 in the masks, but the loss was not told: its ignore_index is -100
#   by default.
#
# Plain PyTorch, GPU: NLLLoss2d.cu ... nll_loss2d_forward_kernel ... Assertion `t >= 0 && t <
#   n_classes` failed.
# Plain PyTorch, CPU: IndexError: Target -1 is out of bounds.
# Trapline: TL101, target[n, y, x] = -1, valid [0, 5) or -100, "-1 looks like an ignore label",
#   ignore_index=-1.
"""Train a semantic segmentation network on small masks with unlabelled borders."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = 5
UNLABELLED = -1


class StreetScenes(Dataset):
    """Images of coloured blocks with a mask; some annotators left a border of unlabelled pixels."""

    def __init__(self, images: int = 96, size: int = 24, seed: int = 3) -> None:
        generator = torch.Generator().manual_seed(seed)
        colours = torch.randn(CLASSES, 3, generator=generator)
        blocks = torch.randint(0, CLASSES, (images, size // 8, size // 8), generator=generator)
        self.masks = blocks.repeat_interleave(8, dim=1).repeat_interleave(8, dim=2)
        noise = 0.2 * torch.randn(images, 3, size, size, generator=generator)
        self.images = colours[self.masks].permute(0, 3, 1, 2) + noise
        self.masks[37, :2, :] = UNLABELLED
        self.masks[71, :, -3:] = UNLABELLED

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index], self.masks[index]


class SegmentationNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.decoder = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
        self.head = nn.Conv2d(16, CLASSES, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.decoder(self.encoder(images)))


def build_dataset(fixed: bool) -> Dataset:
    return StreetScenes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--fixed", action="store_true", help="tell the loss which label to ignore")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=8, shuffle=True)
    model = SegmentationNet().to(device)
    criterion = nn.CrossEntropyLoss(ignore_index=UNLABELLED) if args.fixed else nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        total = 0.0
        for images, masks in loader:
            logits = model(images.to(device))
            loss = criterion(logits, masks.to(device))  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
