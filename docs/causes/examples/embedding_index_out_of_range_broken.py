import torch
from torch import nn

vocabulary = ["<pad>", "the", "cat", "sat"]
table = nn.Embedding(len(vocabulary), 8)
vocabulary.append("<mask>")  # added after the table was made
ids = torch.tensor([[1, 2, vocabulary.index("<mask>")]])
vectors = table(ids)
