# Wrong: a missing age is NaN; `.long()` turns it into the smallest 64-bit integer (on x86), which
#   then is used as an index. The line that fails is not the line that is wrong.
#
# Plain PyTorch, GPU: IndexKernel.cu / vectorized_gather_kernel ... "index out of bounds".
# Plain PyTorch, CPU: IndexError: index -9223372036854775808 is out of bounds for dimension 0 with
#   size 11
# Trapline: TL108, the cast in `age_group` is the origin; the index is where it surfaced.
"""Train a regression of income on age groups and work experience."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

GROUPS = 11


class People(Dataset):
    """Answers to a survey. Two people did not tell their age."""

    def __init__(self, people: int = 300, seed: int = 29) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.age = torch.randint(18, 100, (people,), generator=generator).float()
        self.experience = torch.rand(people, 3, generator=generator)
        self.income = 0.02 * self.age + self.experience.sum(dim=1)
        self.age[[141, 202]] = float("nan")
        self.income[[141, 202]] = 1.0

    def __len__(self) -> int:
        return len(self.age)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.age[index], self.experience[index], self.income[index]


class IncomeModel(nn.Module):
    def __init__(self, fill_unknown: bool) -> None:
        super().__init__()
        self.group_effect = nn.Parameter(torch.zeros(GROUPS))
        self.rest = nn.Linear(3, 1)
        self.fill_unknown = fill_unknown

    def age_group(self, age: torch.Tensor) -> torch.Tensor:
        if self.fill_unknown:
            age = age.nan_to_num(100.0)
        return (age / 10).long()  # <- here

    def forward(self, age: torch.Tensor, experience: torch.Tensor) -> torch.Tensor:
        group = self.age_group(age)
        return self.group_effect[group] + self.rest(experience).squeeze(1)  # <- surfaces


def build_dataset(fixed: bool) -> Dataset:
    return People()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--fixed", action="store_true", help="put people of unknown age in group 10")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=20, shuffle=True)
    model = IncomeModel(fill_unknown=args.fixed).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

    for epoch in range(args.epochs):
        total = 0.0
        for age, experience, income in loader:
            predicted = model(age.to(device), experience.to(device))
            loss = (predicted - income.to(device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
