# Wrong: nn.BCELoss wants probabilities; the model returns raw scores (no sigmoid).
#
# Plain PyTorch, GPU: Loss.cu ... Assertion `input_val >= zero && input_val <= one` failed.
# Plain PyTorch, CPU: RuntimeError: all elements of input should be between 0 and 1
# Trapline: TL106, the score and its place, valid [0, 1], "use BCEWithLogitsLoss".
"""Train a multi-label tagger: four tags per article, any of which may hold."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TAGS = 4


class Articles(Dataset):
    """Bag-of-words vectors; a tag holds when the article's words lean towards it."""

    def __init__(self, articles: int = 256, seed: int = 19) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.words = torch.randn(articles, 40, generator=generator)
        leaning = torch.randn(40, TAGS, generator=generator)
        self.tags = (self.words @ leaning > 0).float()

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.words[index], self.tags[index]


class Tagger(nn.Module):
    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(40, 64), nn.ReLU())
        self.scores = nn.Linear(64, TAGS)
        self.activation = activation

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.activation(self.scores(self.body(words)))


def build_dataset(fixed: bool) -> Dataset:
    return Articles()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--fixed", action="store_true", help="end the model with a sigmoid")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    loader = DataLoader(build_dataset(args.fixed), batch_size=32, shuffle=True)
    model = Tagger(nn.Sigmoid() if args.fixed else nn.Identity()).to(device)
    criterion = nn.BCELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        total = 0.0
        for words, tags in loader:
            predicted = model(words.to(device))
            loss = criterion(predicted, tags.to(device))  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
