# Wrong: "<pad>" is added to the tokenizer after the embedding got its size; its id is the number of
#   rows.
#
# Plain PyTorch, GPU: Indexing.cu ... indexSelectSmallIndex ... Assertion `srcIndex <
#   srcSelectDimSize` failed (small batches), or the gather kernel's "index out of bounds" (large
#   ones).
# Plain PyTorch, CPU: IndexError: index out of range in self
# Trapline: TL103, input[row, column] = rows of the table, `words` Embedding needs one row more.
"""Train a sentiment classifier on short reviews with a word tokenizer."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

GOOD = ["lovely", "superb", "moving", "clever", "warm"]
BAD = ["dull", "weak", "noisy", "flat", "clumsy"]
OTHER = ["the", "film", "was", "and", "its", "plot", "score", "ending", "felt", "with", "very", "rather"]


class WordTokenizer:
    def __init__(self) -> None:
        self.ids = {word: number for number, word in enumerate(sorted(GOOD + BAD + OTHER))}
        self.pad_token_id = -1

    def add_pad_token(self) -> None:
        self.pad_token_id = self.ids["<pad>"] = len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __call__(self, text: str) -> list[int]:
        return [self.ids[word] for word in text.split()]


class Reviews(Dataset):
    """Reviews of 8 words; the last two were cut short by an import."""

    def __init__(self, tokenizer: WordTokenizer, reviews: int = 320, seed: int = 13) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.items = []
        for number in range(reviews):
            label = int(torch.randint(0, 2, (), generator=generator))
            words = [OTHER[i] for i in torch.randint(0, len(OTHER), (6,), generator=generator)]
            words += [(GOOD, BAD)[label][i] for i in torch.randint(0, 5, (2,), generator=generator)]
            words = words[-5:] if number >= reviews - 2 else words
            self.items.append((tokenizer(" ".join(words)), label))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[list[int], int]:
        return self.items[index]


class SentimentNet(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, 24)
        self.classifier = nn.Linear(24, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.words(ids).mean(dim=1))  # <- here


def build_dataset(fixed: bool) -> Dataset:
    return Reviews(WordTokenizer())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--fixed", action="store_true", help="size the embedding last")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    tokenizer = WordTokenizer()
    if args.fixed:
        tokenizer.add_pad_token()
    model = SentimentNet(len(tokenizer)).to(device)
    if not args.fixed:
        tokenizer.add_pad_token()

    def collate(batch: list[tuple[list[int], int]]) -> tuple[torch.Tensor, torch.Tensor]:
        longest = max(len(ids) for ids, _ in batch)
        padded = [ids + [tokenizer.pad_token_id] * (longest - len(ids)) for ids, _ in batch]
        return torch.tensor(padded), torch.tensor([label for _, label in batch])

    loader = DataLoader(Reviews(tokenizer), batch_size=16, shuffle=True, collate_fn=collate)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(args.epochs):
        total = 0.0
        for ids, labels in loader:
            loss = F.cross_entropy(model(ids.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
