# Wrong: rewards are divided by their standard deviation. Once the policy is always right, all
#   rewards are equal, so 0 / 0 makes the loss NaN, the step makes the weights NaN, and the next
#   batch samples from NaN.
#
# Plain PyTorch, GPU: `probability tensor contains either `inf`, `nan` or element < 0` as a
#   device-side assert.
# Plain PyTorch, CPU: RuntimeError: probability tensor contains either `inf`, `nan` or element < 0
# Trapline: TL107, input[row] = nan in the row of probabilities, all rows of the batch.
"""Train a policy by REINFORCE: pick the lever that the light calls for."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LEVERS = 3


class Lights(Dataset):
    """What the agent sees, and the lever that pays."""

    def __init__(self, situations: int = 512, seed: int = 41) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.levers = torch.randint(0, LEVERS, (situations,), generator=generator)
        self.lights = nn.functional.one_hot(self.levers, LEVERS).float()
        self.lights += 0.05 * torch.randn(situations, LEVERS, generator=generator)

    def __len__(self) -> int:
        return len(self.levers)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.lights[index], self.levers[index]


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(LEVERS, 16), nn.Tanh())
        self.action = nn.Linear(16, LEVERS)

    def forward(self, lights: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.action(self.body(lights)), dim=1)


def build_dataset(fixed: bool) -> Dataset:
    return Lights()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--fixed", action="store_true", help="keep the divisor above zero")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=32, shuffle=True)
    policy = Policy().to(device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    epsilon = 1e-6 if args.fixed else 0.0

    for epoch in range(args.epochs):
        total = 0.0
        for lights, levers in loader:
            probabilities = policy(lights.to(device))
            actions = torch.multinomial(probabilities, 1)  # <- here
            rewards = (actions.squeeze(1) == levers.to(device)).float()
            advantage = (rewards - rewards.mean()) / (rewards.std() + epsilon)
            log_probability = probabilities.gather(1, actions).squeeze(1).log()
            loss = -(advantage * log_probability).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += rewards.mean().item()
        print(f"epoch {epoch + 1}  reward {total / len(loader):.4f}  loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
