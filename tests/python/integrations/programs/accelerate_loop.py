"""A loop of one's own over Accelerate: ``accelerate_loop.py MODE [--broken] [--follow]``."""

import os
import sys

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from torch import nn
from torch.utils.data import DataLoader, Dataset

mode, broken = sys.argv[1], "--broken" in sys.argv
if "--install" in sys.argv:
    import trapline

    trapline.install()


class Points(Dataset):
    def __init__(self) -> None:
        self.x = torch.randn(96, 6, generator=torch.Generator().manual_seed(3))
        self.y = torch.arange(96) % 4
        if broken:
            self.y[71] = 9

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> tuple:
        return self.x[index], self.y[index]


torch.manual_seed(0)
points = Points()
accelerator = Accelerator(
    cpu=True,
    gradient_accumulation_steps=2 if mode == "accumulate" else 1,
    dataloader_config=DataLoaderConfiguration(
        split_batches=mode == "split", dispatch_batches=True if mode == "dispatch" else None
    ),
)
model = nn.Linear(6, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(points, 8, shuffle=True, generator=torch.Generator().manual_seed(5))
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
if "--follow" in sys.argv:
    from trapline.integrations.accelerate import follow

    follow(model, optimizer, loader, step=3 if mode == "skip" else 0)
total = 0.0
for epoch in range(2):
    batches = accelerator.skip_first_batches(loader, 3) if mode == "skip" and epoch == 0 else loader
    for x, y in batches:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        total += loss.item()
# One write: the processes share one pipe.
os.write(1, f"result {accelerator.process_index} {total}\n".encode())
