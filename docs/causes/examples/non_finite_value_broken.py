import io

import torch

weight = torch.randn(8, 4)
weight[3, 1] = 70_000
file = io.BytesIO()
torch.save({"weight": weight.half()}, file)  # beyond 65504: inf in float16

file.seek(0)
logits = torch.ones(4) @ torch.load(file)["weight"].float().T
token = torch.multinomial(logits.softmax(0), 1)  # fails here: inf - inf is NaN
