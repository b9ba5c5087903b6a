import torch

values = torch.randn(3, 5)
best = torch.tensor([[0], [4], [-1]])  # -1: "none"
picked = values.gather(1, best.clamp(min=0)).masked_fill(best < 0, 0.0)
