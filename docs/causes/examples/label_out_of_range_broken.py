import torch
import torch.nn.functional as F

logits = torch.randn(4, 10)
labels = torch.tensor([1, 5, 10, 3])  # counted from 1 to 10
loss = F.cross_entropy(logits, labels)  # classes are 0 to 9
