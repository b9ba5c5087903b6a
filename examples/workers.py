# Wrong: one row of the event log carries the level 37 (a torn line); the levels are 0..11. Two
#   worker processes load the data and a sampler of its own mixes it, so neither the batch nor the
#   row tells which line it was.
#
# Plain PyTorch, GPU: nll_loss_forward_reduce_cuda_kernel_2d ... Assertion `t >= 0 && t < n_classes`
#   failed.
# Plain PyTorch, CPU: IndexError: Target 37 is out of bounds.
# Trapline: TL101, target[row] = 37, valid [0, 12), and the number of the line in the data set.
"""Train a classifier of log events, with every level drawn equally often, loaded by worker processes."""

import argparse
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

LEVELS = 12


class Events(Dataset):
    """Event vectors and their level, one per line of the log."""

    def __init__(self, skip_torn: bool, lines: int = 360, seed: int = 71) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.levels = torch.randint(0, LEVELS, (lines,), generator=generator)
        self.events = torch.randn(LEVELS, 16, generator=generator)[self.levels]
        self.events += 0.5 * torch.randn(lines, 16, generator=generator)
        self.levels[229] = 37
        if skip_torn:
            whole = self.levels < LEVELS
            self.levels, self.events = self.levels[whole], self.events[whole]

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"event": self.events[index], "level": self.levels[index]}


class LevelSampler(Sampler[int]):
    """Takes one line of each level in turn, in random order within a level."""

    def __init__(self, levels: torch.Tensor, seed: int) -> None:
        self.levels = levels
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return len(self.levels)

    def __iter__(self) -> Iterator[int]:
        order = torch.randperm(len(self.levels), generator=self.generator).tolist()
        queues = {int(level): [i for i in order if self.levels[i] == level] for level in self.levels.unique()}
        while queues:
            for level in list(queues):
                yield queues[level].pop()
                if not queues[level]:
                    del queues[level]


def build_dataset(fixed: bool) -> Dataset:
    return Events(skip_torn=fixed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--start", choices=["fork", "spawn", "forkserver"], help="how workers are started")
    parser.add_argument("--fixed", action="store_true", help="skip torn lines")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    dataset = build_dataset(args.fixed)
    loader = DataLoader(
        dataset,
        batch_size=15,
        sampler=LevelSampler(dataset.levels, seed=5),
        num_workers=2,
        multiprocessing_context=args.start,
        persistent_workers=True,
    )
    model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, LEVELS)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        total = 0.0
        for batch in loader:
            logits = model(batch["event"].to(device))
            loss = F.cross_entropy(logits, batch["level"].to(device))  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
