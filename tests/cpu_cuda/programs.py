"""Small programs as people write them for CUDA; each takes a device and gives all that it computed."""

from __future__ import annotations

import copy
import io

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def train(model, batches, loss_of, device, optimizer=None, steps=4):
    model = model.to(device)
    optimizer = optimizer(model) if optimizer else torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    for batch in batches[:steps]:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, *(t.to(device, non_blocking=True) for t in batch))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())
    return [torch.stack(losses), *model.state_dict().values()]


def images(count=4, size=16, channels=1):
    return [(torch.randn(4, channels, size, size), torch.randint(0, 5, (4,))) for _ in range(count)]


def convolutional_net(device):
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.2), nn.Flatten(),
        nn.Linear(392, 5),
    )  # fmt: skip
    return train(model, images(), lambda m, x, y: F.cross_entropy(m(x), y), device)


def residual_net(device):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1, groups=2)
            self.norm = nn.GroupNorm(2, 4)

        def forward(self, x):
            return x + F.silu(self.norm(self.b(F.gelu(self.a(x)))))

    model = nn.Sequential(Block(), Block(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))
    sgd = lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)  # noqa: E731
    return train(model, images(channels=4), lambda m, x, y: F.cross_entropy(m(x), y), device, sgd)


def variational_autoencoder(device):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = nn.Linear(64, 16), nn.Linear(8, 64)

        def forward(self, x):
            mean, log_variance = self.encode(x).chunk(2, -1)
            z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
            return torch.sigmoid(self.decode(z)), mean, log_variance

    def loss(model, x):
        out, mean, log_variance = model(x)
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        return F.binary_cross_entropy(out, x, reduction="sum") + divergence

    return train(Model(), [(torch.rand(5, 64),) for _ in range(4)], loss, device)


def adversarial_net(device):
    make = nn.Sequential(
        nn.ConvTranspose2d(6, 8, 4), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 1, 5), nn.Tanh()
    )
    judge = nn.Sequential(nn.Conv2d(1, 4, 4, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.LazyLinear(1))
    judge(torch.zeros(1, 1, 8, 8))
    make, judge = make.to(device), judge.to(device)
    ours, theirs = (torch.optim.Adam(m.parameters(), lr=2e-3, betas=(0.5, 0.999)) for m in (make, judge))
    for _ in range(3):
        real, noise = torch.randn(4, 1, 8, 8, device=device), torch.randn(4, 6, 1, 1, device=device)
        ones, zeros = torch.ones(4, 1, device=device), torch.zeros(4, 1, device=device)
        fake = make(noise)
        theirs.zero_grad()
        (F.binary_cross_entropy_with_logits(judge(real), ones)
         + F.binary_cross_entropy_with_logits(judge(fake.detach()), zeros)).backward()  # fmt: skip
        theirs.step()
        ours.zero_grad()
        F.binary_cross_entropy_with_logits(judge(fake), ones).backward()
        ours.step()
    return [*make.state_dict().values(), *judge.state_dict().values()]


def language_model(device):
    """After nanoGPT."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(50, 16), nn.Embedding(12, 16)
            self.attend, self.out = nn.Linear(16, 48), nn.Linear(16, 50, bias=False)
            self.norm, self.dropout = nn.LayerNorm(16), nn.Dropout(0.1)
            self.out.weight = self.tokens.weight

        def forward(self, ids):
            count, length = ids.shape
            x = self.dropout(self.tokens(ids) + self.places(torch.arange(length, device=ids.device)))
            q, k, v = (
                t.view(count, length, 2, 8).transpose(1, 2) for t in self.attend(self.norm(x)).split(16, 2)
            )
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
            return self.out(x + y.transpose(1, 2).reshape(count, length, 16))

    def loss(model, ids):
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten(), ignore_index=3)

    model = Model()
    learned = train(model, [(torch.randint(0, 50, (3, 12)),) for _ in range(4)], loss, device)
    ids = torch.zeros(1, 1, dtype=torch.long, device=device)
    with torch.no_grad():
        for _ in range(6):
            best, _ = torch.topk(model(ids)[:, -1], 5)
            logits = model(ids)[:, -1].masked_fill(model(ids)[:, -1] < best[:, [-1]], float("-inf"))
            ids = torch.cat([ids, torch.multinomial(logits.softmax(-1), 1)], 1)
    return [*learned, ids]


def recurrent_net_with_lengths(device):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.rnn, self.out = (
                nn.Embedding(20, 6, padding_idx=0),
                nn.LSTM(6, 5, 2, bidirectional=True),
                nn.Linear(10, 3),
            )

        def forward(self, ids):
            packed = nn.utils.rnn.pack_padded_sequence(self.table(ids), [7, 5, 2])
            out, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0])
            return self.out(out.max(0).values)

    batches = [(torch.randint(0, 20, (7, 3)), torch.randint(0, 3, (3,))) for _ in range(3)]
    return train(Model(), batches, lambda m, x, y: F.cross_entropy(m(x), y, label_smoothing=0.1), device)


def encoder_of_pytorch(device):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def loss(model, x, mask):
        return model(x, src_key_padding_mask=mask).pow(2).mean()

    batches = [
        (torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])) for _ in range(3)
    ]
    learned = train(model, batches, loss, device)
    model.eval()
    with torch.inference_mode():
        return [*learned, model(batches[0][0].to(device))]


def policy_gradient(device):
    policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)
    optimizer, drawn = torch.optim.RMSprop(policy.parameters(), lr=0.01), []
    for _ in range(5):
        choice = torch.distributions.Categorical(logits=policy(torch.randn(6, 4, device=device)))
        actions = choice.sample()
        drawn.append(actions)
        optimizer.zero_grad()
        (-(choice.log_prob(actions) * (actions.float() - 1)).sum() - 0.1 * choice.entropy().mean()).backward()
        optimizer.step()
    return [*drawn, *policy.state_dict().values()]


def mixed_precision_without_autocast(device):
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)).to(device, torch.bfloat16)
    return train(
        model,
        [(torch.randn(3, 6).bfloat16(),) for _ in range(3)],
        lambda m, x: m(x).float().pow(2).mean(),
        device,
    )


def checkpoints_of_activations_and_of_files(device):
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 2)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(2):
        x = torch.randn(3, 6, device=device, requires_grad=True)
        checkpoint(model, x, use_reentrant=False).pow(2).sum().backward()
        optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state, other = torch.load(file, map_location=device), copy.deepcopy(model)
    other.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return [*other.state_dict().values(), x.grad]


def functional_transforms(device):
    weight, x = torch.randn(3, 4, device=device), torch.randn(5, 4, device=device)
    each = torch.func.vmap(torch.func.grad(lambda w, v: (w @ v).tanh().sum()), (None, 0))(weight, x)
    return [
        each,
        torch.func.jacrev(lambda v: weight @ v)(x[0]),
        torch.func.hessian(lambda v: v.pow(3).sum())(x[0]),
    ]


def averaged_weights_and_penalties(device):
    model = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)).to(device)
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    x = torch.randn(6, 4, device=device)

    def closure():
        optimizer.zero_grad()
        loss = model(x).pow(2).mean() + 0.01 * sum(p.abs().sum() for p in model.parameters())
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
        average.update_parameters(model)
    return [p.detach() for p in average.parameters()]


def signal_processing(device):
    x = torch.randn(2, 256, device=device)
    spectrum = torch.stft(x, 64, window=torch.hann_window(64, device=device), return_complex=True)
    back = torch.istft(spectrum, 64, window=torch.hann_window(64, device=device))
    return [spectrum.abs(), back, torch.fft.rfft(x).real, x.cumsum(1), x.sort().values, x.unique()]


def detection_losses(device):
    points, labels = torch.rand(6, 2, device=device), torch.randint(0, 3, (6,), device=device)
    grid = F.affine_grid(torch.eye(2, 3, device=device)[None], (1, 1, 4, 4), align_corners=False)
    sampled = F.grid_sample(torch.rand(1, 1, 5, 5, device=device), grid, align_corners=False)
    near = torch.cdist(points, points).topk(2, largest=False).indices
    table = torch.zeros(3, 2, device=device).index_add_(0, labels, points)
    ctc = F.ctc_loss(
        torch.randn(5, 2, 4, device=device).log_softmax(2), torch.randint(1, 4, (2, 3), device=device),
        torch.full((2,), 5), torch.full((2,), 3),
    )  # fmt: skip
    return [
        sampled,
        near,
        table,
        F.one_hot(labels),
        torch.bincount(labels),
        ctc,
        F.interpolate(sampled, scale_factor=2),
    ]


PROGRAMS = [value for name, value in list(globals().items()) if getattr(value, "__module__", "") == __name__]
PROGRAMS = [
    program
    for program in PROGRAMS
    if program.__code__.co_varnames[: program.__code__.co_argcount] == ("device",)
]
