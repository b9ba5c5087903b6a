import os  # noqa: F401 - what is run needs it
import resource  # noqa: F401
import sys

import torch

exec(sys.argv[1])
try:
    torch.nn.functional.cross_entropy(torch.zeros(1, 3), torch.tensor([7]))
except IndexError:
    print("handled", flush=True)
