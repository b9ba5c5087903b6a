import torch
import torch.nn.functional as F

logits = torch.tensor([2.5, -1.0, 0.3])  # raw outputs
target = torch.tensor([1.0, 0.0, 1.0])
loss = F.binary_cross_entropy_with_logits(logits, target)
