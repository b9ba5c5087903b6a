import torch

values = torch.randn(3, 5)
best = torch.tensor([[0], [4], [-1]])  # -1: "none"
found = best.squeeze(1) >= 0  # rows without a place have no value either
picked = values[found].gather(1, best[found])
