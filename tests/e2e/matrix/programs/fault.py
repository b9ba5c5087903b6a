import torch
from torch import nn

print("begun", flush=True)
nn.functional.cross_entropy(torch.randn(4, 3), torch.tensor([0, 1, 7, 2]))
