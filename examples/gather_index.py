# Wrong: the state after the last step of a sequence of n steps is number n - 1; the code gathers
#   number n.
#
# Plain PyTorch, GPU: ScatterGatherKernel.cu / vectorized_gather_kernel ... "index out of bounds".
#   Shorter sequences are read one step too late without a word.
# Plain PyTorch, CPU: RuntimeError: index 20 is out of bounds for dimension 1 with size 20
# Trapline: TL105, gather, index[row, 0, 0] = 20, valid [0, 20), and the number of the sequence.
"""Train a recurrent network that classifies sequences of different lengths by their last state."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

STEPS = 20


class Walks(Dataset):
    """Random walks that drift up or down, padded to 20 steps; few of them use all 20."""

    def __init__(self, walks: int = 240, seed: int = 31) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.drift = torch.randint(0, 2, (walks,), generator=generator)
        self.lengths = torch.randint(5, STEPS, (walks,), generator=generator)
        self.lengths[[101, 170]] = STEPS
        steps = torch.randn(walks, STEPS, 2, generator=generator) + (self.drift[:, None, None] - 0.5)
        present = torch.arange(STEPS)[None, :, None] < self.lengths[:, None, None]
        self.walks = steps.cumsum(dim=1) * present

    def __len__(self) -> int:
        return len(self.walks)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.walks[index], self.lengths[index], self.drift[index]


class WalkNet(nn.Module):
    def __init__(self, last: int) -> None:
        super().__init__()
        self.rnn = nn.GRU(2, 16, batch_first=True)
        self.out = nn.Linear(16, 2)
        self.last = last

    def forward(self, walks: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states, _ = self.rnn(walks)
        index = (lengths + self.last)[:, None, None].expand(-1, 1, states.size(2))
        return self.out(states.gather(1, index).squeeze(1))  # <- here


def build_dataset(fixed: bool) -> Dataset:
    return Walks()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--fixed", action="store_true", help="take state number length - 1")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=24, shuffle=True)
    model = WalkNet(last=-1 if args.fixed else 0).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        total = 0.0
        for walks, lengths, drift in loader:
            loss = F.cross_entropy(model(walks.to(device), lengths.to(device)), drift.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
