import os  # noqa: F401 - what is run needs it
import sys

exec(sys.argv[1])
import torch  # noqa: E402

print("begun", flush=True)
torch.nn.functional.cross_entropy(torch.zeros(1, 3), torch.tensor([7]))
