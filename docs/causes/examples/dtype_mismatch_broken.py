import torch
import torch.nn.functional as F

logits = torch.randn(3, 4)
labels = torch.tensor([0.0, 2.0, 3.0])  # as read from a CSV file
loss = F.cross_entropy(logits, labels)
