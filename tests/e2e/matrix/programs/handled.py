import torch
from torch import nn

try:
    nn.functional.cross_entropy(torch.randn(4, 3), torch.tensor([0, 1, 7, 2]))
except IndexError:
    print("handled", flush=True)
print("end", flush=True)
