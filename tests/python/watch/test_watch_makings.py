"""Ways to make a NaN that a first look did not know: each in step 41, which is not looked at."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from trapline._watch import light, replayed, slopes  # noqa: E402

BAD = 40


@pytest.fixture
def watch():
    torch.manual_seed(0)
    light.install()
    yield light
    light.uninstall()


def train(model, loss_of, lr=0.01):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for turn in range(BAD + 10):
        loss = loss_of(turn)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Meta(torch.Tensor):
    """As MONAI's MetaTensor: a class that only Python knows."""


def test_a_loss_of_a_class_of_pythons(watch):
    model = nn.Linear(2, 1)

    def loss_of(turn):
        x = torch.randn(4, 2)
        x[1, 1] = float("nan") if turn == BAD else 0
        loss = model(x.as_subclass(Meta)).pow(2).mean()
        assert type(loss) is Meta
        return loss

    train(model, loss_of)
    assert (watch.verdict()["kind"], watch.verdict()["step"]) == ("input", 41)


def test_weights_that_an_optimizer_has_copies_of(watch):
    """Float16 with master weights, whose gradients overflow."""
    model = nn.Linear(2, 1).half()
    masters = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.SGD(masters, lr=0.1)
    for turn in range(BAD + 10):
        model.zero_grad()
        (model(torch.randn(4, 2).half()).float().pow(2).mean() * (1e9 if turn == BAD else 1)).backward()
        for master, parameter in zip(masters, model.parameters()):
            master.grad = parameter.grad.float()
        optimizer.step()
        with torch.no_grad():
            for master, parameter in zip(masters, model.parameters()):
                parameter.copy_(master)
    seen = watch.verdict()
    assert (seen["kind"], seen["name"], seen["step"], seen["half"]) == ("gradient", "weight", 41, True)


def test_what_made_the_factor_of_a_loss(watch):
    """Advantages of a minibatch of one."""
    model = nn.Linear(2, 1)

    def loss_of(turn):
        rows = 1 if turn == BAD else 4
        gain = torch.arange(rows).float()
        with torch.no_grad():
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        ratio = model(torch.randn(rows, 2)).flatten().exp()
        return torch.max(-gain * ratio, -gain * ratio.clamp(0.8, 1.2)).mean()  # as PPO has it

    train(model, loss_of)
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("loss", "std", 41)
    assert "gain.std()" in seen["origin"]["code"]


def test_what_computed_the_factor(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(BAD + 10):
        rewards = torch.randn(1 if turn == BAD else 4)
        gain = (rewards - rewards.mean()) / (rewards.std() + 1e-8)
        ratio = model(torch.randn(len(rewards), 2)).flatten().exp()
        optimizer.zero_grad()
        (-gain * ratio).mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["op"], seen["factor"], seen["step"]) == ("mul", True, 41)
    assert seen["computed"]["name"] == "gain"
    assert seen["computed"]["text"] == "(rewards - rewards.mean()) / (rewards.std() + 1e-08)"
    assert seen["origin"]["code"].strip().startswith("gain = ")
    assert seen["origin"]["line"] == seen["computed"]["line"]


def shares(scores):
    return scores / scores.sum(dim=1, keepdim=True)


def test_what_the_factor_was_made_of_before(watch):
    """Of itself, in a branch that has run; and before that by a function of the program's."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(BAD + 10):
        scores = torch.zeros(3, 4) if turn == BAD else torch.rand(3, 4)
        if turn < 2:
            weight = torch.ones(3, 4)
        else:
            weight = shares(scores)
            weight = weight * 3 / weight.sum()
        optimizer.zero_grad()
        (model(torch.randn(3, 4, 2)).squeeze(-1) * weight).sum().backward()
        optimizer.step()
    seen = watch.verdict()
    made = seen["computed"]
    assert (seen["step"], made["name"], made["text"]) == (41, "weight", "weight * 3 / weight.sum()")
    assert made["before"]["text"] == "scores / scores.sum(dim=1, keepdim=True)"


def test_a_factor_without_an_assignment(watch):
    """Python's own number, which the loop gives: its name is told, and nothing of a line."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for scale in [1.0] * BAD + [float("nan")] * 10:
        optimizer.zero_grad()
        (model(torch.randn(4, 2)) * scale).mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["factor"], seen["computed"], "origin" in seen) == (True, {"name": "scale"}, False)


def test_another_infinity_is_not_the_factor(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    best = float("inf")
    for turn in range(BAD + 10):
        optimizer.zero_grad()
        (model(torch.randn(4, 2)).mean() * (1 / torch.tensor(0.0 if turn == BAD else 1.0))).backward()
        optimizer.step()
    assert best == float("inf")
    seen = watch.verdict()
    assert (seen["op"], seen["finite_before"], "computed" in seen) == ("reciprocal", True, False)
    assert "1 / torch.tensor" in seen["origin"]["code"]


def test_a_mask_that_is_finite_is_no_factor(watch):
    model = nn.Linear(2, 1)

    def loss_of(turn):
        out = model(torch.randn(4, 2)).flatten() * torch.tensor([1.0, 0, 1, 1])
        return (out / (0.0 if turn == BAD else 1.0)).mean()

    train(model, loss_of)
    assert "factor" not in watch.verdict()


def test_what_the_loss_is_made_with(watch, monkeypatch):
    """The operations whose derivative it may be, of a loss that is unlike those looked at before."""
    monkeypatch.setattr(slopes, "_MAX_UNLIKE", 0)
    monkeypatch.setattr(replayed, "of_gradients", lambda *_: {})  # what cannot run again
    model = nn.Linear(2, 1)

    def loss_of(turn):
        out = model(torch.randn(4, 2))
        if turn != BAD:
            return out.tanh().sum()
        return (torch.acos(out * 0 + 1) / 2 - (out.sigmoid().log() + 1).exp() / out.exp() + 10).mean() ** 0.5

    train(model, loss_of, 1e-3)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["made_with"]) == ("gradient", 41, ["pow", "acos", "exp", "log"])


class Flow(nn.Module):
    """As a normalizing flow: `nll` is no call of a module, its layers are."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)

    def nll(self, x):
        return self.second(self.first(x) + x.log()).pow(2).mean()


def test_what_stands_between_modules(watch):
    model = Flow()

    def loss_of(turn):
        x = torch.rand(4, 2) + 0.1
        x[0, 0] = 0 if turn == BAD else 1
        return model.nll(x)

    train(model, loss_of, 1e-3)
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("loss", "log", 41)
    assert "x.log()" in seen["origin"]["code"]


@pytest.mark.parametrize(
    ("op", "made"),
    [
        ("acos", lambda y: torch.acos(y + 3)),
        ("log1p", lambda y: torch.log1p(y - 5)),
        ("cosh", lambda y: torch.cosh(y + 200)),
        ("prod", lambda y: (y + 1e30).prod()),
        ("softmax", lambda y: torch.softmax(y + torch.full((4, 1), -torch.inf), 0)),
    ],
)
def test_operations_of_the_loss(watch, op, made):
    model = nn.Linear(2, 1)

    def loss_of(turn):
        y = model(torch.randn(4, 2))
        return made(y).sum() if turn == BAD else y.pow(2).mean()

    train(model, loss_of, 1e-3)
    seen = light.facts()
    assert (seen["kind"], seen["op"], seen["step"]) == ("loss", op, 41)


class Graph:
    """As PyTorch Geometric's Data: its tensors are in a mapping of its own."""

    def __init__(self, x):
        self.store = {"x": x}


def test_data_in_an_object_of_a_librarys(watch):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 1)

        def forward(self, graph):
            return self.fc(graph.store["x"])

    model = Net()

    def loss_of(turn):
        x = torch.randn(4, 2)
        x[1, 1] = float("nan") if turn == BAD else 0
        return model(Graph(x)).pow(2).mean()

    train(model, loss_of)
    seen = watch.verdict()
    assert (seen["kind"], seen["type"], seen["step"]) == ("input", "Net", 41)


def test_what_pytorch_takes_apart_is_told_as_it_is_called(watch):
    """`logdet` of a negative determinant is a NaN that it puts there by itself."""

    class Mix(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.eye(3))

        def forward(self, turn):
            return torch.logdet(self.weight * (-1.0 if turn == BAD else 1.0))

    mix = Mix()
    train(mix, lambda turn: mix(turn).square())
    seen = light.harmless()  # its derivative is 0 there
    assert (seen["op"], seen["finite_before"]) == ("logdet", True)


class Cosine(nn.Module):
    """Its weights were never initialised; or, with `fine`, what is 0 is what vision models begin with."""

    def __init__(self, fine):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3) if fine else torch.zeros(4, 3))
        self.token = nn.Parameter(torch.zeros(1, 3) if fine else torch.ones(1, 3))

    def forward(self, x):
        x = x + self.token
        return (x @ self.weight.T) / (x.norm(dim=1, keepdim=True) * self.weight.norm(dim=1))


@pytest.mark.parametrize("fine", [False, True])
def test_weights_of_zeros_are_told_where_they_made_it(watch, fine):
    model = Cosine(fine)
    data = torch.randn(6, 3)
    if fine:
        data[2] = 0  # with other numbers for the token its norm would not be 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model(data).sum().backward()
    optimizer.step()
    seen = light.verdict()
    assert (seen["op"], seen["step"]) == ("div", 1)
    assert seen.get("zeros") == (None if fine else "weight")


def test_a_masked_mean_over_nothing(watch):
    """The loss of each element by itself divides nothing: the program's own division is the one."""
    model = nn.Linear(2, 3)

    def loss_of(turn):
        each = nn.functional.cross_entropy(
            model(torch.randn(4, 2)), torch.tensor([0, 1, 2, 0]), reduction="none"
        )
        picked = torch.zeros(4) if turn == BAD else torch.ones(4)
        return (each * picked).sum() / picked.sum()

    train(model, loss_of)
    assert (watch.verdict()["kind"], watch.verdict()["op"], watch.verdict()["step"]) == ("loss", "div", 41)


class Policy(nn.Module):
    """Gives a distribution, in which no tensor is looked for."""

    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(2, 1)

    def forward(self, x):
        return torch.distributions.Normal(self.mean(x), 1.0, validate_args=False)


def test_an_action_outside_the_support(watch):
    model = Policy()

    def loss_of(turn):
        action = torch.full((4, 1), 1.0 if turn == BAD else 0.5)
        return -model(torch.randn(4, 2)).log_prob(torch.atanh(action)).mean()

    train(model, loss_of)
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("loss", "atanh", 41)
    assert "torch.atanh(action)" in seen["origin"]["code"]


def test_weights_of_a_teacher(watch):
    student, teacher = nn.Linear(2, 1), nn.Linear(2, 1)

    def loss_of(turn):
        x = torch.randn(4, 2)
        with torch.no_grad():
            if turn == BAD:
                teacher.bias /= torch.zeros(1) * teacher.bias
            target = teacher(x)
        return nn.functional.mse_loss(student(x), target)

    train(student, loss_of)
    seen = watch.verdict()
    assert (seen["kind"], seen["name"], seen["step"], seen["beside"]) == ("weights", "bias", 41, True)


def spread_out(scores):
    weights = torch.exp(scores)
    return torch.log(weights / weights.sum())


def train_by(loss_of, batches):
    model = nn.Linear(2, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for batch in batches:
        optimizer.zero_grad()
        scores = model(batch)
        loss = loss_of(scores)
        loss.backward()
        optimizer.step()


def test_the_line_of_an_operation_of_the_loss(watch):
    def negative(scores):
        return -torch.log(scores - 4.0).mean()

    train_by(negative, [torch.full((3, 2), 4.0), torch.full((3, 2), 1.0)])
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("loss", 2, "log")
    assert seen["origin"]["code"].strip() == "return -torch.log(scores - 4.0).mean()"


def test_a_sum_that_overflowed_before_the_operation_that_met_it(watch):
    """Each exponential is finite, their sum is not."""
    near = 88.5 / 2

    def loss_of(scores):
        return -spread_out(scores).mean()

    train_by(loss_of, [torch.ones(3, 2), torch.full((3, 2), near)])
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["inf_before"]["op"]) == ("loss", "log", "sum")
    assert seen["origin"]["code"].strip() == "return torch.log(weights / weights.sum())"


def test_the_statement_that_spoils_gradients_before_the_step(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in (torch.ones(3, 2), torch.zeros(3, 2)):
        optimizer.zero_grad()
        (model(batch) * (batch.sum() != 0)).sum().backward()
        for p in model.parameters():
            p.grad /= p.grad.norm()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["changed"], seen["step"]) == ("gradient", True, 2)
    assert seen["origin"]["code"].strip() == "p.grad /= p.grad.norm()"
