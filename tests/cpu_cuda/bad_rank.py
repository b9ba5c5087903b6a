"""Two ranks, one with a bad label. `reduce` shares the loss before anybody reads it; `ddp` trains with it."""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
torch.manual_seed(0)
model = nn.Linear(4, 3).cuda()
ddp = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
features, labels = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 7 if rank == 1 else 2])
loss = F.cross_entropy(ddp(features.cuda()), labels.cuda())  # here
if sys.argv[1] == "reduce":
    total = loss.detach().clone()
    dist.all_reduce(total)
    print(f"rank {rank} sees {total.item() > 0}", flush=True)  # reads
else:
    loss.backward()
    optimizer.step()  # reads
    print(f"rank {rank} has trained", flush=True)
dist.destroy_process_group()
