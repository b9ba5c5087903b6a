# Wrong: the head is on another device than the backbone, and `forward` does not move the features
#   there. The other device is the GPU, or "meta" (PyTorch's device without memory) where there is
#   none.
#
# Plain PyTorch, with a GPU: RuntimeError: Expected all tensors to be on the same device, ... No
#   device-side assert.
# Plain PyTorch, without: RuntimeError: Tensor on device meta is not on the expected device cpu!
# Trapline: TL202, which tensor is where, and the `.to(...)` to add; of "meta", that nothing is there to move.
"""Train a model whose large head was moved to a device of its own."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

OTHER_DEVICE = "cuda" if torch.cuda.is_available() else "meta"


class Sensors(Dataset):
    """Readings of a machine and the state it was in."""

    def __init__(self, readings: int = 256, seed: int = 61) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.states = torch.randint(0, 3, (readings,), generator=generator)
        self.readings = torch.randn(3, 10, generator=generator)[self.states]
        self.readings += 0.5 * torch.randn(readings, 10, generator=generator)

    def __len__(self) -> int:
        return len(self.readings)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.readings[index], self.states[index]


class StateNet(nn.Module):
    def __init__(self, head_device: str) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.head = nn.Linear(32, 3, device=head_device)

    def forward(self, readings: torch.Tensor) -> torch.Tensor:
        features = self.backbone(readings)
        return self.head(features)  # <- here


def build_dataset(fixed: bool) -> Dataset:
    return Sensors()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--fixed", action="store_true", help="keep both parts on one device")
    args = parser.parse_args()
    torch.manual_seed(0)

    loader = DataLoader(build_dataset(args.fixed), batch_size=16, shuffle=True)
    model = StateNet(head_device="cpu" if args.fixed else OTHER_DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        total = 0.0
        for readings, states in loader:
            loss = F.cross_entropy(model(readings), states)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
