"""What modules and losses were given: keywords, casts, graphs, infinities from the beginning."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402


@pytest.fixture
def watch(watch_with_batches):
    return watch_with_batches


def step(model, loss, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return optimizer


class Ratio(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 1)

    def forward(self, x=None, scale=None):
        if x is None:
            raise ValueError("x is missing")
        return self.head(x) / scale


def test_the_first_call_was_given_keywords(watch):
    """The module is found in its first call, which is on its way by then."""
    model = Ratio()
    step(model, model(x=torch.ones(4, 3), scale=torch.tensor([[1.0], [0.0], [1.0], [1.0]])).sum())
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("output", "div", 1)


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.head = nn.Linear(3, 8), nn.LayerNorm(8), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.norm(self.embed(x)))


def test_what_a_cast_made_infinite_is_no_mask(watch):
    """Autocast's float16: the number is beyond it before the first layer, and NaN behind the second."""
    model, optimizer = Embedded(), None
    for number in range(3):
        x = torch.ones(4, 3)
        x[2, 1] = 81920.0 if number == 2 else 2.0
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(x)
        optimizer = step(model, out.float().sum(), optimizer)
    seen = watch.verdict()
    before = seen["inf_before"]
    assert (seen["op"], seen["name"], seen["step"]) == ("native_layer_norm", "norm", 3)
    assert (before["op"], before["name"]) == ("cast", "embed")


def graphs(samples):
    """Atoms of all samples one after the other, who owns each, and the pairs of atoms."""
    x, owner, pairs, begin = [], [], [], 0
    for at, (atoms, _) in enumerate(samples):
        x.append(atoms)
        owner += [at] * len(atoms)
        pairs += [(begin + i, begin + i + 1) for i in range(len(atoms) - 1)]
        begin += len(atoms)
    return torch.cat(x), torch.tensor(owner), torch.tensor(pairs).T.contiguous(), torch.ones(len(samples), 1)


class Molecules(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, at):
        atoms = torch.rand(3 + at % 4, 3, generator=torch.Generator().manual_seed(at))
        if at == 9:
            atoms[1] = atoms[2]
        return atoms, at


class Energy(nn.Module):
    def __init__(self, edges):
        super().__init__()
        self.head, self.edges = nn.Linear(3, 1), edges

    def forward(self, x, owner, pairs):
        energy = self.head(x)[:, 0]
        if self.edges:
            length = (x[pairs[0]] - x[pairs[1]]).norm(dim=1)
            energy = energy.index_add(0, pairs[0], length / length)
        else:
            energy = energy / (x[:, 0] - x[:, 0].roll(1)).abs().clamp(0, 1)
        return torch.zeros(4).index_add(0, owner, energy)[:, None]


@pytest.mark.parametrize("edges", [True, False])
def test_the_graph_that_an_edge_or_a_node_is_of(watch, edges):
    model, optimizer = Energy(edges), None
    for x, owner, pairs, y in DataLoader(Molecules(), batch_size=4, collate_fn=graphs):
        optimizer = step(model, nn.functional.mse_loss(model(x, owner, pairs), y), optimizer)
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("output", "div", 3)
    assert (seen["sample"]["dataset_index"], seen["sample"]["likely"]) == (9, True)


class Transitions(nn.Module):
    """As in a CRF: no tag 2 may follow a tag 0."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(3, 3))
        with torch.no_grad():
            self.table[0, 2] = -math.inf

    def forward(self, before, after):
        return -self.table[before, after]


def test_minus_infinity_that_was_there_from_the_start(watch):
    model, optimizer = Transitions(), None
    for number in range(1, 6):
        after = torch.tensor([1, 2 if number == 4 else 0])
        loss = model(torch.tensor([1, 0]), after).sum()
        assert math.isinf(loss.item()) == (number == 4)
        optimizer = step(model, loss, optimizer)
    seen = watch.verdict()
    assert (seen["kind"], seen["name"], seen["step"], seen["what"]) == ("weights", "table", 4, "inf")
    assert seen["since_start"] is True


def test_weights_that_the_first_step_meets_are_no_mask(watch):
    model = Transitions()
    step(model, model(torch.tensor([1, 0]), torch.tensor([1, 2])).sum())
    seen = watch.verdict()
    assert (seen["kind"], seen["step"]) == ("weights", 1) and "since_start" not in seen


def test_an_infinite_loss_with_finite_gradients_is_said_and_is_no_fault(watch):
    """Label smoothing weighs a class that a mask forbids."""
    model, optimizer = nn.Linear(2, 3), None
    for number in range(1, 4):
        mask = torch.zeros(4, 3)
        if number == 2:
            mask[1, 2] = -math.inf
        loss = nn.functional.cross_entropy(
            model(torch.ones(4, 2)) + mask, torch.tensor([0, 1, 0, 1]), label_smoothing=0.1
        )
        assert math.isinf(loss.item()) == (number == 2)
        optimizer = step(model, loss, optimizer)
    assert watch.verdict() is None
    said = watch.harmless()
    assert (said["step"], said["what"], said["op"]) == (2, "inf", "logsoftmax")


def normalised(out, pixels):
    target = (pixels - pixels.mean(1, keepdim=True)) / pixels.std(1, keepdim=True)
    return (out - target).pow(2).mean()


def line_of(seen):
    with open(__file__) as file:
        return file.read().splitlines()[seen["origin"]["line"] - 1].strip()


def test_targets_that_the_programs_own_loss_has_made(watch):
    """The loss was given finite pixels, and its target is none of the data."""
    model, optimizer = nn.Linear(3, 3), None
    for number in range(1, 4):
        pixels = torch.rand(4, 3)
        if number == 3:
            pixels[2] = 1.0
        out = model(torch.ones(4, 3))
        loss = normalised(out, pixels)
        optimizer = step(model, loss, optimizer)
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("loss", "div", 3)
    assert seen["origin"]["function"] == "normalised" and " / " in line_of(seen)


def test_the_line_whose_call_was_given_finite_numbers(watch):
    """A function of a library's: neither its text nor the graph tells the operation."""
    model, optimizer = nn.Linear(3, 4), None
    for number in range(1, 4):
        out = model(torch.ones(2, 3))
        scaled = out * (0.0 if number == 3 else 1.0)
        alike = torch.corrcoef(scaled)
        optimizer = step(model, alike.sum(), optimizer)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], "op" in seen) == ("loss", 3, False)
    assert line_of(seen) == "alike = torch.corrcoef(scaled)"


def test_a_score_that_a_mask_forbids_is_picked(watch):
    model, optimizer = nn.Linear(2, 3), None
    for number in range(1, 4):
        mask = torch.tensor([[False, False, number == 2]])
        chances = model(torch.ones(4, 2)).masked_fill(mask, -math.inf).log_softmax(-1)
        loss = -chances.gather(1, torch.tensor([[0], [1], [2], [1]])).mean()
        assert math.isinf(loss.item()) == (number == 2)
        optimizer = step(model, loss, optimizer)
    assert watch.verdict() is None
    said = watch.harmless()
    assert (said["step"], said["what"], said["op"], said["kind"]) == (2, "inf", "gather", "loss")
    assert "chances.gather" in line_of(said)


class Loaded:
    """As a library's data set holds it: the member, and a property that shows it."""

    def __init__(self, w):
        self._w = w

    @property
    def w(self):
        return self._w


def test_the_record_of_a_program_without_a_loader(watch):
    """The loss is multiplied with weights of which one alone, of the program's own data, is infinite."""
    model, optimizer = nn.Linear(2, 1), None
    data = Loaded(torch.linspace(0.5, 1.5, 40).repeat_interleave(2)[:40])
    data._w[29] = math.inf
    for number in range(1, 4):
        rows = slice(10 * number, 10 * number + 10) if number < 3 else slice(24, 34)
        weight = data.w[rows].clone() if number == 3 else torch.ones(10)
        loss = (model(torch.ones(10, 2)).square().squeeze(1) * weight).mean()
        optimizer = step(model, loss, optimizer)
    seen = watch.verdict()
    assert (seen["what"], seen["step"], seen["factor"]) == ("inf", 3, True)
    sample = seen["sample"]
    assert (sample["dataset_index"], sample["dataset"]["name"], sample["likely"]) == (29, "data.w", True)


def scaled(x):
    share = 1.0 / x.std(0)
    return x * share


def centred(x):
    return x - x.mean(0)


def loss_of(model, x):
    return model(centred(scaled(x))).square().mean()


def test_functions_before_the_model_in_a_program_without_a_loader(watch):
    """What they made of finite numbers is no record's."""
    model, optimizer = nn.Linear(2, 1), None
    for number in range(1, 4):
        x = torch.linspace(0.5, 1.5, 20).reshape(10, 2)
        if number == 3:
            x[:, 1] = 0.25
        loss = loss_of(model, x)
        optimizer = step(model, loss, optimizer)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("loss", 3, "sub")
    assert (seen["inf_before"]["op"], line_of(seen)) == ("reciprocal", "share = 1.0 / x.std(0)")


def test_a_call_that_the_program_made_again_with_other_arguments(watch):
    """A trainer tries `model(x, state=...)` first, and catches what that raises."""
    model, optimizer = nn.Linear(2, 1), None
    for number in range(1, 4):
        x = torch.ones(4, 2) / (0.0 if number == 3 else 1.0)
        try:
            out = model(x, state=number)
        except TypeError:
            out = model(x)
        optimizer = step(model, (out - out).sum() + out.mean(), optimizer)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["type"]) == ("input", 3, "Linear")


class Balance:
    """Weights of tasks, which each epoch computes anew."""

    def __init__(self):
        self.weights = torch.ones(3)

    def after_epoch(self, now, before):
        self.weights = 3 * torch.softmax(now / before, 0)


def test_a_member_that_the_loss_is_multiplied_with(watch):
    model, optimizer, balance = nn.Linear(2, 3), None, Balance()
    for number in range(1, 4):
        if number == 3:
            balance.after_epoch(torch.zeros(3), torch.zeros(3))
        losses = model(torch.ones(4, 2)).square().mean(0)
        optimizer = step(model, (balance.weights * losses).sum(), optimizer)
    seen = watch.verdict()
    assert (seen["step"], seen["factor"], seen["computed"]["name"]) == (3, True, "balance.weights")
    assert seen["computed"]["text"] == "3 * torch.softmax(now / before, 0)"
    assert seen["origin"]["code"].strip() == "self.weights = 3 * torch.softmax(now / before, 0)"


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.point, self.head = nn.Linear(2, 3), nn.Linear(3, 1)
        self.head.weight.data.copy_(torch.tensor([[0.5, -0.5, 0.5]]))  # infinities of both signs

    def forward(self, x, valid):
        h = self.point(x).masked_fill(~valid[..., None], -math.inf)
        return self.head(h.amax(dim=1))


def test_a_row_of_which_a_mask_leaves_nothing(watch):
    model, optimizer = Pooled(), None
    for number in range(1, 4):
        valid = torch.ones(2, 4, dtype=torch.bool)
        valid[1] = number < 3
        optimizer = step(model, model(torch.randn(2, 4, 2), valid).sum(), optimizer)
    seen = watch.verdict()
    assert (seen["op"], seen["inf_before"]["op"], seen["step"]) == ("addmm", "amax", 3)
    assert line_of(seen) == "return self.head(h.amax(dim=1))"


class Boxed(nn.Module):
    """Its output is the loss."""

    def __init__(self):
        super().__init__()
        self.width = nn.Linear(2, 1)

    def forward(self, x, bound):
        half = self.width(x).abs() + 0.1
        prior = torch.distributions.Uniform(-bound, bound)
        return torch.distributions.kl_divergence(torch.distributions.Uniform(-half, half), prior).mean()


def test_what_lies_outside_a_support_is_infinite(watch):
    model, optimizer = Boxed(), None
    for number in range(1, 4):
        bound = torch.tensor(0.01 if number == 2 else 50.0)
        optimizer = step(model, model(torch.rand(4, 2), bound), optimizer)
    assert watch.verdict() is None
    said = watch.harmless()
    assert (said["step"], said["what"], said["op"]) == (2, "inf", "index_put_")
    assert "kl_divergence" in line_of(said)


class Summed(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(2, 1)
        self.register_buffer("total", torch.zeros(2, dtype=torch.float16))

    def forward(self, x):
        self.total += x.sum(0).half()
        return self.out(x * 0 + self.total.float())


def test_a_buffer_that_its_own_forward_pass_overflows(watch):
    model, optimizer = Summed(), None
    for number in range(1, 4):
        given = torch.full((2, 2), 30000.0 if number > 1 else 1.0)
        optimizer = step(model, model(given).sum(), optimizer)
    seen = watch.verdict()
    assert (seen["step"], seen["kind"], seen["name"]) == (3, "weights", "total")
    assert seen["written"] == "forward" and line_of(seen) == "self.total += x.sum(0).half()"


def test_a_training_that_goes_on_in_evaluation(watch):
    """Batch norm stays frozen, and its statistics were set between the two."""
    model, optimizer = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)), None
    for _ in range(3):
        optimizer = step(model, model(torch.rand(4, 2)).sum(), optimizer)
    model.eval()
    model[1].running_mean[1] = math.nan
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer = step(model, model(torch.rand(4, 2)).sum(), optimizer)
    seen = watch.verdict()
    assert (seen["step"], seen["kind"], seen["name"]) == (4, "weights", "1.running_mean")


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(2, 2)

    def forward(self, x, closed):
        scores = (x @ x.transpose(1, 2)).masked_fill(closed[:, None, :], -math.inf)
        return self.out(scores.softmax(-1) @ x)


def test_nan_in_rows_that_the_loss_leaves_out(watch):
    """Of a filler row all targets are ignored: the loss is finite, and no gradient is."""
    torch.manual_seed(0)
    model, optimizer = Attending(), None
    for number in range(1, 4):
        closed = torch.zeros(3, 4, dtype=torch.bool)
        labels = torch.zeros(3, 4, dtype=torch.long)
        if number == 3:
            closed[2], labels[2] = True, -100
        loss = nn.functional.cross_entropy(model(torch.rand(3, 4, 2), closed).flatten(0, 1), labels.flatten())
        assert bool(loss.isfinite())
        optimizer = step(model, loss, optimizer)
    seen = watch.verdict()
    assert (seen["step"], seen["kind"], seen["op"]) == (3, "output", "_softmax")
    assert "scores.softmax(-1)" in line_of(seen)


MISSING = {
    "pow": lambda pred, y, seen: torch.nanmean((pred - y) ** 2),
    "mse_loss": lambda pred, y, seen: nn.functional.mse_loss(pred, y, reduction="none")[seen].mean(),
    "smooth_l1_loss": lambda pred, y, seen: (
        nn.functional.smooth_l1_loss(pred, y, reduction="none").masked_fill(~seen, 0).mean()
    ),
}


@pytest.mark.parametrize("op", MISSING)
def test_what_the_loss_leaves_out_is_not_left_out_of_its_derivative(watch, op):
    x, y = torch.ones(12, 3), torch.zeros(12, 2)
    y[7, 1] = math.nan
    model, optimizer = nn.Linear(3, 2), None
    for given, target in DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=4):
        optimizer = step(model, MISSING[op](model(given), target, ~target.isnan()), optimizer)
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"], seen["left_out"]) == ("gradient", op, 2, True)
    assert seen["sample"]["dataset_index"] == 7
    assert seen["element"] == {"name": "target", "index": [3, 1], "value": "nan"}


def test_the_line_that_called_a_model_without_lines_of_its_own(watch):
    model = nn.Sequential(nn.Linear(3, 2), nn.Softmax(dim=1), nn.LogSoftmax(dim=0))
    model[0].weight.data.fill_(2e38)
    x, optimizer = torch.ones(4, 3), torch.optim.SGD(model.parameters(), lr=0.01)
    out = model(x)
    out.sum().backward()
    optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["inf_before"]["op"]) == ("output", "addmm")
    assert seen["origin"]["code"].strip() == "out = model(x)"
