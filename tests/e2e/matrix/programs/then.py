import os  # noqa: F401 - what is run needs it
import sys

import torch

try:
    torch.nn.functional.cross_entropy(torch.zeros(1, 3), torch.tensor([7]))
finally:
    exec(sys.argv[1])
