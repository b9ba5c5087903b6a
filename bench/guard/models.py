"""Four training programs of the sizes that people train, in plain torch: nothing is downloaded.

Each maker takes a device and returns a function that runs one whole step: forward, backward, optimizer.
``SMALL`` shrinks them to what a CPU does in a moment, to try a benchmark out.
"""

from __future__ import annotations

from typing import Callable

import torch
import torch.nn.functional as F
from torch import nn

Step = Callable[[], None]


def mlp(device: torch.device, small: bool = False) -> Step:
    """Embedding, two linear layers, cross entropy, SGD: little more than launches, the hardest case for a
    guard.
    """
    width, batch = (32, 32) if small else (256, 256)
    table = nn.Embedding(1000, width, device=device)
    net = nn.Sequential(nn.Linear(8 * width, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
    optimizer = torch.optim.SGD([*table.parameters(), *net.parameters()], lr=0.01)
    tokens = torch.randint(0, 1000, (batch, 8), device=device)
    labels = torch.randint(0, 10, (batch,), device=device)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(table(tokens).flatten(1)), labels).backward()
        optimizer.step()

    return step


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


def gpt2(device: torch.device, small: bool = False) -> Step:
    """The size of GPT-2: 12 blocks of width 768, vocabulary 50257, sequences of 1024; AdamW under bf16
    autocast.
    """
    layers, width, heads, vocabulary, length, batch = (
        (2, 64, 4, 500, 32, 2) if small else (12, 768, 12, 50257, 1024, 8)
    )
    tokens = nn.Embedding(vocabulary, width, device=device)
    positions = nn.Embedding(length, width, device=device)
    blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width)).to(device)
    parameters = [*tokens.parameters(), *positions.parameters(), *blocks.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    text = torch.randint(0, vocabulary, (batch, length + 1), device=device)
    place = torch.arange(length, device=device)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            hidden = blocks(tokens(text[:, :-1]) + positions(place))
            logits = hidden @ tokens.weight.t()
            loss = F.cross_entropy(logits.flatten(0, 1).float(), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()

    return step


class Bottleneck(nn.Module):
    def __init__(self, inner: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)),
        )
        same = inner == 4 * width and stride == 1
        self.short = nn.Identity() if same else nn.Conv2d(inner, 4 * width, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.short(x))


def resnet(device: torch.device, small: bool = False) -> Step:
    """The size of ResNet-50 on 224x224 images, batch 64; SGD with momentum."""
    depths, size, batch, classes = ((1, 1, 1, 1), 32, 2, 10) if small else ((3, 4, 6, 3), 224, 64, 1000)
    layers: list[nn.Module] = [
        *(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    ]
    inner = 64
    for stage, depth in enumerate(depths):
        for i in range(depth):
            width = 64 << stage
            layers.append(Bottleneck(inner, width, 2 if stage and i == 0 else 1))
            inner = 4 * width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, classes)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(batch, 3, size, size, device=device)
    labels = torch.randint(0, classes, (batch,), device=device)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()

    return step


def recommender(device: torch.device, small: bool = False) -> Step:
    """26 embedding bags and an MLP, as a recommender has them: more guarded calls a step than anything
    else here.
    """
    tables, rows, width, batch = (4, 1000, 16, 64) if small else (26, 100_000, 64, 2048)
    bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables)).to(device)
    top = nn.Sequential(nn.Linear(tables * width, 512), nn.ReLU(), nn.Linear(512, 1)).to(device)
    optimizer = torch.optim.SGD([*bags.parameters(), *top.parameters()], lr=0.01)
    ids = [torch.randint(0, rows, (batch, 4), device=device) for _ in range(tables)]
    clicks = torch.rand(batch, device=device).round()

    def step() -> None:
        optimizer.zero_grad()
        pooled = torch.cat([bag(column) for bag, column in zip(bags, ids)], dim=1)
        F.binary_cross_entropy(top(pooled).squeeze(1).sigmoid(), clicks).backward()
        optimizer.step()

    return step


MODELS: dict[str, Callable[[torch.device, bool], Step]] = {
    "mlp": mlp,
    "gpt2": gpt2,
    "resnet": resnet,
    "recommender": recommender,
}
