import torch
import torch.nn.functional as F
from torch import nn

classes = ["background", "cat", "dog"]
labels = torch.tensor([0, 2, 1, 2])
head = nn.Linear(16, len(classes))
loss = F.cross_entropy(head(torch.randn(4, 16)), labels)
