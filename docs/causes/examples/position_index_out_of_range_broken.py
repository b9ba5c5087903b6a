import torch
from torch import nn

LONGEST = 16
tokens, positions = nn.Embedding(100, 8), nn.Embedding(LONGEST, 8)
ids = torch.randint(100, (2, 20))  # 20 tokens, 16 positions
x = tokens(ids) + positions(torch.arange(ids.shape[1]))
