# Wrong: the masks are 8-bit images in which 255 means "void" (as in Pascal VOC and Cityscapes); the
#   loss has 6 classes and was not told to ignore 255.
#
# Plain PyTorch, GPU: NLLLoss2d.cu ... nll_loss2d_forward_kernel ... Assertion `t >= 0 && t <
#   n_classes` failed.
# Plain PyTorch, CPU: IndexError: Target 255 is out of bounds.
# Trapline: TL101, target[n, y, x] = 255, valid [0, 6) or -100, "255 looks like an ignore label",
#   ignore_index=255.
"""Train a segmentation network on 8-bit masks with a void class, as Pascal VOC has them."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = 6
VOID = 255


class VoidMasks(Dataset):
    """Two halves of different classes per image; a void line between them in one image of eight."""

    def __init__(self, images: int = 80, size: int = 20, seed: int = 5) -> None:
        generator = torch.Generator().manual_seed(seed)
        colours = torch.randn(CLASSES, 3, generator=generator)
        pairs = torch.randint(0, CLASSES, (images, 2), generator=generator)
        masks = pairs[:, :, None, None].expand(images, 2, size // 2, size).reshape(images, size, size)
        noise = 0.2 * torch.randn(images, 3, size, size, generator=generator)
        self.images = colours[masks].permute(0, 3, 1, 2) + noise
        self.masks = masks.to(torch.uint8)
        self.masks[7::8, size // 2, :] = VOID

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index], self.masks[index].long()


class VocNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 24, 5, padding=2), nn.ReLU())
        self.classifier = nn.Sequential(nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, CLASSES, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.backbone(images))


def build_dataset(fixed: bool) -> Dataset:
    return VoidMasks()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--fixed", action="store_true", help="ignore the void pixels")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=4, shuffle=True)
    model = VocNet().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    ignored = {"ignore_index": VOID} if args.fixed else {}

    for epoch in range(args.epochs):
        total = 0.0
        for images, masks in loader:
            logits = model(images.to(device))
            loss = F.cross_entropy(logits, masks.to(device), **ignored)  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
