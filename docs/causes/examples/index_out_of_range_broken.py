import torch

values = torch.randn(3, 5)
best = torch.tensor([[0], [4], [-1]])  # -1: "none"
picked = values.gather(1, best)  # gather does not count from the end
