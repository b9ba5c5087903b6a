# Wrong: each signal is divided by its own standard deviation; one recording is silent, so 0 / 0
#   gives NaN, which the sigmoid keeps. The sigmoid is there; the data is broken.
#
# Plain PyTorch, GPU: Loss.cu ... Assertion `input_val >= zero && input_val <= one` failed, as if a
#   sigmoid were missing.
# Plain PyTorch, CPU: RuntimeError: all elements of input should be between 0 and 1
# Trapline: TL106, input[row] = nan, told apart from a missing sigmoid, and the number of the silent
#   recording.
"""Train a detector of heartbeats in short recordings."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    """Noise, half of it with a pulse; the sensor of recording 90 was unplugged."""

    def __init__(self, epsilon: float, recordings: int = 200, seed: int = 23) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.signals = 0.5 * torch.randn(recordings, 32, generator=generator)
        self.beats = torch.randint(0, 2, (recordings,), generator=generator).float()
        self.signals[:, 10:14] += 2.0 * self.beats[:, None]
        self.signals[90] = 0.0
        self.epsilon = epsilon

    def __len__(self) -> int:
        return len(self.signals)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        signal = self.signals[index]
        return (signal - signal.mean()) / (signal.std() + self.epsilon), self.beats[index]


class BeatNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Sequential(
            nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(8), nn.Flatten()
        )
        self.detector = nn.Sequential(nn.Linear(64, 1), nn.Sigmoid())

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        return self.detector(self.filters(signals.unsqueeze(1))).squeeze(1)


def build_dataset(fixed: bool) -> Dataset:
    return Recordings(epsilon=1e-6 if fixed else 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--fixed", action="store_true", help="keep the divisor above zero")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=10, shuffle=True)
    model = BeatNet().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        total = 0.0
        for signals, beats in loader:
            probability = model(signals.to(device))
            loss = F.binary_cross_entropy(probability, beats.to(device))  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
