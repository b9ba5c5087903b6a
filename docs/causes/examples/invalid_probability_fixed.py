import torch

logits = torch.full((2, 4), float("-inf"))
logits[0, 1] = 0.0
nothing_left = logits.isneginf().all(-1)
logits[nothing_left, 0] = 0.0  # a row without any token: the end token
probs = logits.softmax(-1)
token = torch.multinomial(probs, 1)
