import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 4, 5), nn.Flatten(), nn.Linear(4 * 28 * 28, 10))
images = torch.randn(2, 3, 40, 40)  # the layer was made for 32 x 32
logits = model(images)
