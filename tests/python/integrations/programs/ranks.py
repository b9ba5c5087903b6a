"""DistributedDataParallel over gloo, started by torchrun: ``ranks.py [--broken] [--record] [--install]``."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    if "--install" in sys.argv:
        import trapline

        trapline.install()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    labels = torch.arange(64) % 4
    if "--broken" in sys.argv:
        labels[41] = 7
    points = TensorDataset(torch.randn(64, 5), labels)
    sampler = DistributedSampler(points, seed=2)
    model = nn.parallel.DistributedDataParallel(nn.Linear(5, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(points, 4, sampler=sampler):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    # One write: the ranks share one pipe.
    line = f"result {dist.get_rank()} {model.module.weight.sum().item()}\n"
    os.write(1, line.encode())
    dist.barrier()
    os._exit(0)  # gloo's threads abort the end of the interpreter now and then, with Trapline or without


if __name__ == "__main__":
    record(main)() if "--record" in sys.argv else main()
