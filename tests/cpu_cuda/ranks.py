"""Two ranks that train with NCCL and check each other; prints what is equal to one process's training."""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)).cuda()
    ddp = nn.parallel.DistributedDataParallel(model, device_ids=[rank], output_device=rank)
    data = torch.randn(2, 6, 4), torch.randint(0, 3, (2, 6))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(ddp(data[0][rank].cuda()), data[1][rank].cuda()).backward()
        optimizer.step()
    weights = [torch.empty_like(model[0].weight) for _ in range(2)]
    dist.all_gather(weights, model[0].weight.detach())
    mine = torch.full((2,), float(rank + 1), device="cuda")
    work = dist.all_reduce(mine, async_op=True)
    work.wait()
    gathered = torch.empty(4, device="cuda")
    dist.all_gather_into_tensor(gathered, torch.full((2,), float(rank), device="cuda"))
    received = torch.zeros(1, device="cuda")
    if rank == 0:
        dist.send(torch.full((1,), 5.0, device="cuda"), 1)
    else:
        dist.recv(received, 0)
    sharded = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).cuda()
    fully_shard(sharded)
    adam = torch.optim.AdamW(sharded.parameters(), lr=0.1)
    for _ in range(2):
        loss = sharded(torch.ones(2, 4, device="cuda")).pow(2).mean()
        loss.backward()
        adam.step()
        adam.zero_grad()
    assert loss.device == mine.device
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    dist.barrier(device_ids=[rank])
    if rank == 1:
        assert torch.equal(*weights) and str(mine.device) == "cuda:1"
        print(mine.tolist(), gathered.tolist(), received.item(), objects, dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
