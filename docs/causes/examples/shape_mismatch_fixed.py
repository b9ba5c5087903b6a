import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 4, 5), nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(4 * 7 * 7, 10))
images = torch.randn(2, 3, 40, 40)  # any size
logits = model(images)
