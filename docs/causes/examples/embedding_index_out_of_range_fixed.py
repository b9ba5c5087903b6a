import torch
from torch import nn

vocabulary = ["<pad>", "the", "cat", "sat"]
vocabulary.append("<mask>")
table = nn.Embedding(len(vocabulary), 8)
ids = torch.tensor([[1, 2, vocabulary.index("<mask>")]])
vectors = table(ids)
