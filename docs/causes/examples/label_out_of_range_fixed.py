import torch
import torch.nn.functional as F

logits = torch.randn(4, 10)
labels = torch.tensor([1, 5, 10, 3]) - 1  # counted from 0
loss = F.cross_entropy(logits, labels)
