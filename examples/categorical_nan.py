# Wrong: illegal moves are masked with -inf; in one position no move is legal, so the softmax of the
#   whole row is NaN.
#
# Plain PyTorch, GPU and CPU: ValueError: Expected parameter logits (...) ... to satisfy the
#   constraint IndependentConstraint(Real(), 1), but found invalid values. No device-side assert
#   (with validate_args=False: one).
# Trapline: TL107, the distribution's parameter and the line that built it.
"""Train a move predictor that samples among the legal moves of a board."""

import argparse

import torch
from torch import nn
from torch.distributions import Categorical
from torch.utils.data import DataLoader, Dataset

MOVES = 6


class Positions(Dataset):
    """Boards with their legal moves and the move that an expert chose. Position 77 is a stalemate."""

    def __init__(self, skip_stalemates: bool, positions: int = 256, seed: int = 43) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.boards = torch.randn(positions, 12, generator=generator)
        self.legal = torch.rand(positions, MOVES, generator=generator) < 0.6
        self.legal[self.legal.sum(dim=1) == 0, 0] = True
        self.legal[77] = False
        taste = torch.randn(12, MOVES, generator=generator)
        self.moves = (self.boards @ taste).masked_fill(~self.legal, -1e9).argmax(dim=1)
        self.kept = [i for i in range(positions) if self.legal[i].any() or not skip_stalemates]

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        position = self.kept[index]
        return self.boards[position], self.legal[position], self.moves[position]


class MoveNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.board = nn.Sequential(nn.Linear(12, 32), nn.ReLU())
        self.moves = nn.Linear(32, MOVES)

    def forward(self, boards: torch.Tensor, legal: torch.Tensor) -> Categorical:
        scores = self.moves(self.board(boards)).masked_fill(~legal, float("-inf"))
        return Categorical(logits=scores)  # <- here


def build_dataset(fixed: bool) -> Dataset:
    return Positions(skip_stalemates=fixed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--fixed", action="store_true", help="leave out positions without a legal move")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=16, shuffle=True)
    model = MoveNet().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        total, agreed = 0.0, 0.0
        for boards, legal, moves in loader:
            choice = model(boards.to(device), legal.to(device))
            loss = -choice.log_prob(moves.to(device)).mean()
            agreed += (choice.sample().cpu() == moves).float().mean().item()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", end="  ")
        print(f"agreed {agreed / len(loader):.2f}", flush=True)


if __name__ == "__main__":
    main()
