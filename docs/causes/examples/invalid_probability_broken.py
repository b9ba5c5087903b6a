import torch

logits = torch.full((2, 4), float("-inf"))  # a mask that leaves no token
logits[0, 1] = 0.0
probs = logits.softmax(-1)  # row 1 is NaN
token = torch.multinomial(probs, 1)
