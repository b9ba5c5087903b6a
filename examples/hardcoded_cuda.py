# Wrong: one recording of the digit data is labelled 10 ("unclear"), and the script can only run on
#   a GPU, so nobody sees that before the job has waited in the queue. Run it with `trapline run
#   --cpu`.
#
# Plain PyTorch, GPU: nll_loss_forward_reduce_cuda_kernel_2d ... Assertion `t >= 0 && t < n_classes`
#   failed.
# Plain PyTorch, without a GPU: SystemExit: this training needs a GPU
# Trapline: with --cpu: TL101, target[row] = 10, valid [0, 10), the number of the recording; no GPU
#   needed.
"""Train a spoken digit recognizer with mixed precision on one GPU."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DIGITS = 10


class SpokenDigits(Dataset):
    """Spectra of spoken digits."""

    def __init__(self, drop_unclear: bool, recordings: int = 320, seed: int = 67) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.digits = torch.randint(0, DIGITS, (recordings,), generator=generator)
        voices = torch.randn(DIGITS, 24, generator=generator)
        self.spectra = voices[self.digits] + 0.4 * torch.randn(recordings, 24, generator=generator)
        self.digits[207] = DIGITS
        if drop_unclear:
            clear = self.digits < DIGITS
            self.digits, self.spectra = self.digits[clear], self.spectra[clear]

    def __len__(self) -> int:
        return len(self.digits)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.spectra[index], self.digits[index]


def build_dataset(fixed: bool) -> Dataset:
    return SpokenDigits(drop_unclear=fixed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--fixed", action="store_true", help="leave out the unclear recording")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this training needs a GPU")
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    torch.cuda.set_device(0)
    torch.backends.cudnn.benchmark = True

    loader = DataLoader(build_dataset(args.fixed), batch_size=16, shuffle=True, pin_memory=True)
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, DIGITS)).cuda()
    class_weights = torch.ones(DIGITS, device="cuda")
    criterion = nn.CrossEntropyLoss(weight=class_weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cuda")

    for epoch in range(args.epochs):
        total = torch.zeros((), device=torch.device("cuda"))
        for spectra, digits in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                logits = model(spectra.cuda(non_blocking=True))
            target = digits.to("cuda", non_blocking=True)
            loss = criterion(logits.float(), target)  # <- here
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.detach()
        torch.cuda.synchronize()
        print(f"epoch {epoch + 1}  loss {total.item() / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
