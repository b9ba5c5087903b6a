# Wrong: the learning rate is far too high, the training diverges, and the checkpoint is written all the
#   same: its weights are NaN. Nothing fails, neither here nor when the file is read.
#
# Plain PyTorch: no error. Where the weights are used, `multinomial` or an index fails much later.
# Trapline: `trapline check finite FOLDER/regressor.pt`: TL109, the tensor, the position, how many.
"""Train a small regressor and save it to a folder, for others to start from."""

import argparse
from pathlib import Path

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fixed", action="store_true", help="keep the last weights with a finite loss")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=50.0)
    inputs = torch.randn(64, 8)
    targets = inputs.sum(1, keepdim=True)

    args.folder.mkdir(parents=True, exist_ok=True)
    for _ in range(40):
        loss = nn.functional.mse_loss(model(inputs), targets)
        if loss.isfinite() or not args.fixed:
            torch.save(model.state_dict(), args.folder / "regressor.pt")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"saved {args.folder / 'regressor.pt'}", flush=True)


if __name__ == "__main__":
    main()
