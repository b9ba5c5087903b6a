"""Whose sample it is where an operation made the NaN: of one row of the batch, and of no weight."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402
from trapline._fault.model.autograd import bad_factor  # noqa: E402


@pytest.fixture
def watch(watch_with_batches):
    return watch_with_batches


class Rows(Dataset):
    """`at_5` stands in the last place of sample 5."""

    def __init__(self, at_5=0.0, size=12):
        self.at_5, self.size = at_5, size

    def __len__(self):
        return self.size

    def __getitem__(self, at):
        return torch.tensor([1.0, float(at), self.at_5 if at == 5 else 1.0]), torch.tensor([1.0])


def train(model, data, loss=nn.functional.mse_loss, **loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x, y in DataLoader(data, **(loader or {"batch_size": 4})):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


class Calls(nn.Module):
    def __init__(self, function, inputs=3):
        super().__init__()
        self.head, self.function = nn.Linear(inputs, 1), function

    def forward(self, x):
        return self.function(self.head, x)


def named(watch):
    seen = watch.verdict()
    sample = seen.get("sample", {})
    return seen["kind"], seen["step"], seen.get("op"), sample.get("dataset_index")


def test_of_an_operation_in_a_module(watch):
    train(Calls(lambda head, x: head(x / x[:, 2:])), Rows())
    assert named(watch) == ("output", 2, "div", 5)
    assert watch.verdict()["sample"]["likely"] is True


def test_of_an_operation_outside_of_the_modules(watch):
    model = Calls(lambda head, x: head(x) * 0 + x[:, 2:])
    train(model, Rows(), loss=lambda out, y: (out.log() - y).mean())
    assert named(watch) == ("loss", 2, "log", 5)


@pytest.mark.parametrize("inside", [True, False])
def test_of_a_gradient(watch, inside):
    """The root of 0, whose slope is Inf, times the 0 of a mask: forward all is finite."""

    def masked(head, x):
        out = (head(x) * (x[:, 2:] != 0)).abs()
        return out.sqrt() if inside else out

    train(Calls(masked), Rows(), loss=lambda out, y: out.mean() if inside else out.sqrt().mean())
    assert named(watch) == ("gradient", 2, "sqrt", 5)


def test_rows_times_heads(watch):
    """[batch * heads, 1]: the sample is that of the row's part."""

    def heads(head, x):
        spread = x.repeat_interleave(2, 0)
        return head(spread / spread[:, 2:]).reshape(len(x), 2).mean(1, keepdim=True)

    train(Calls(heads), Rows())
    assert named(watch) == ("output", 2, "div", 5)


def test_where_all_rows_are_bad_the_one_without_which_none_is(watch):
    train(Calls(lambda head, x: head(x / x[:, 2:].prod())), Rows())
    assert named(watch) == ("output", 2, "div", 5)


def test_all_rows_are_of_no_sample(watch):
    train(Calls(lambda head, x: head(x / (x[:, 2:].prod() * 0))), Rows())
    assert named(watch) == ("output", 1, "div", None)


def test_what_has_the_shape_of_weights_is_of_no_sample(watch):
    """Four features, and four rows in the batch."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor([1.0, 0.0, 1.0, 1.0]))

        def forward(self, x):
            return (x[:, :1] * (self.scale / self.scale)).mean(1, keepdim=True)

    train(Scaled(), Rows(at_5=1.0))
    assert named(watch) == ("output", 1, "div", None)


def test_of_an_infinity_that_a_gate_hides(watch):
    """sigmoid(Inf) is finite, and so is the loss: the head's gradient is 0 times Inf."""
    train(
        Calls(lambda head, x: head(1 / x[:, 1:2]).sigmoid(), inputs=1),
        Rows(at_5=1.0),
        batch_size=4,
        sampler=[*range(1, 6), 0],
    )
    assert named(watch) == ("output", 2, "reciprocal", 0)
    seen = watch.verdict()
    assert (seen["what"], seen["finite_before"], "backward" in seen) == ("inf", True, False)


def test_of_rows_that_are_cut_away_behind_a_norm(watch):
    """The loss is finite without them, and the gradient of the norm is 0 times NaN."""

    class Sets(nn.Module):
        def __init__(self):
            super().__init__()
            self.score, self.norm, self.head = nn.Linear(3, 3), nn.LayerNorm(3), nn.Linear(3, 1)

        def forward(self, x):
            empty = x[:, 2:] == 0
            share = self.score(x).masked_fill(empty, -torch.inf).softmax(-1)
            return self.head(self.norm(share)[~empty[:, 0]])

    train(Sets(), Rows(), loss=lambda out, y: out.mean())
    assert named(watch) == ("output", 2, "_softmax", 5)
    assert "backward" not in watch.verdict()


def test_of_a_loss_that_the_model_makes_of_another_output(watch):
    """The gradient that arrives at the prediction is the one that the loss inside has broken."""

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(3, 1)

        def forward(self, x):
            made = self.head(x)
            return {"made": made, "loss": ((made * (x[:, 2:] != 0)) ** 2).sqrt().mean()}

    train(Both(), Rows(), loss=lambda out, y: out["loss"])
    assert named(watch) == ("gradient", 2, "sqrt", 5)
    assert watch.verdict()["backward"]["type"] == "Both"


def test_batch_of_targets_that_are_of_no_row(watch):
    def collate(samples):
        return [x for x, _ in samples]

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for rows in DataLoader(Rows(), batch_size=4, collate_fn=collate):
        x = torch.stack(rows)
        target = (x[:, 2] / x[:, 2]).mean().expand(4, 1)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), target).backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"]) == ("target", 2)
    assert (seen["sample"]["batch"], seen["sample"]["one_of"]) == (1, [4, 5, 6, 7])


def test_weights_that_were_broken_and_made_the_loss_so(watch):
    """Inf in a weight whose gradient is finite: the loss is Inf from the first step, no gradient is."""
    model = nn.Linear(3, 1)
    with torch.no_grad():
        model.bias[0] = math.inf
    train(model, Rows(at_5=1.0), loss=lambda out, y: out.mean())
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["name"], seen["what"]) == ("weights", 1, "bias", "inf")


class Filled(Dataset):
    """A fill value for what was not measured, in sample 21."""

    def __init__(self, fill=9.97e36):
        self.fill = fill

    def __len__(self):
        return 40

    def __getitem__(self, at):
        return torch.tensor([1.0, self.fill if at == 21 else 2.0, 1.0]), torch.tensor([1.0])


def train_adam(data):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in DataLoader(data, batch_size=2):
        optimizer.zero_grad()
        nn.functional.l1_loss(model(x), y).backward()
        optimizer.step()


def test_squares_that_an_optimizer_keeps(watch):
    train_adam(Filled())
    seen = watch.verdict()
    assert (seen["kind"], seen["state"], seen["name"], seen["what"]) == (
        "state",
        "exp_avg_sq",
        "weight",
        "inf",
    )
    assert (seen["step"], seen["sample"]["dataset_index"]) == (11, 21)


def test_large_gradients_whose_squares_do_not_overflow(watch):
    train_adam(Filled(1e18))
    assert watch.verdict() is None


def test_squares_between_the_looks(watch, monkeypatch):
    from trapline._watch import budget, watching

    monkeypatch.setattr(watching, "ALWAYS", 4)
    monkeypatch.setattr(budget, "_SHARE", 1e-9)  # after the first steps none is looked at
    train_adam(Filled())
    assert (watch.verdict()["kind"], watch.verdict()["step"]) == ("state", 11)


def test_texts_that_were_padded_are_those_of_the_batch(watch):
    """The user's own collate function may have sorted or dropped some: the row is no proof."""

    class Texts(Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, at):
            return torch.arange(1, 1 if at == 5 else 2 + at % 3) % 4

    def collate(texts):
        texts = sorted(texts, key=len)
        return nn.utils.rnn.pad_sequence(texts, batch_first=True)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(5, 3), nn.Linear(3, 1)

        def forward(self, ids):
            known = (ids != 0).float().unsqueeze(2)
            return self.head((self.table(ids) * known).sum(1) / known.sum(1))

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for ids in DataLoader(Texts(), batch_size=4, collate_fn=collate):
        optimizer.zero_grad()
        model(ids).mean().backward()
        optimizer.step()
    sample = watch.verdict()["sample"]
    assert (named(watch)[:3], sample["batch"], sample["one_of"]) == (("output", 2, "div"), 1, [4, 5, 6, 7])


def test_data_that_a_recurrent_layer_hides(watch):
    """Its gates saturate at Inf, and the output is finite; the gradient of a weight is 0 times Inf."""

    class Series(Rows):
        def __getitem__(self, at):
            x = torch.rand(6, 1)
            x[3] = math.inf if at == 5 else x[3]
            return x, torch.tensor([1.0])

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.LSTM(1, 4, batch_first=True), nn.Linear(4, 1)

        def forward(self, x):
            return self.head(self.rnn(x)[0][:, -1])

    train(Recurrent(), Series())
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["sample"]["dataset_index"]) == ("input", 2, 5)


def test_the_sample_of_a_batch_without_a_target(watch):
    """A mean over nothing: no fault, but said, with whose labels were all left out."""

    class Labels(Rows):
        def __getitem__(self, at):
            return super().__getitem__(at)[0], torch.tensor(-100 if at == 5 else 0)

    def loss(out, y):
        return nn.functional.cross_entropy(out, y)

    train(nn.Linear(3, 2), Labels(at_5=1.0), loss=loss, batch_size=1)
    said = watch.harmless()
    assert watch.verdict() is None
    assert (said["step"], said["op"], said["sample"]["dataset_index"]) == (6, "nll_loss", 5)


def test_forces_that_a_model_asks_for(watch):
    """`autograd.grad` in a forward pass: the derivative that was not finite, and whose row."""

    class Forces(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(1, 1)

        def forward(self, x):
            x = x.requires_grad_()
            energy = self.head(((x[:, 2:] - x[:, :1]) ** 2).sqrt()).sum()
            return torch.autograd.grad(energy, x, create_graph=True)[0][:, 2:]

    class Apart(Rows):
        def __getitem__(self, at):
            return torch.tensor([1.0, float(at), 1.0 if at == 5 else 3.0]), torch.tensor([1.0])

    train(Forces(), Apart(), loss=lambda out, y: (out - y).square().mean())
    seen = watch.verdict()
    first = seen["inf_before"]
    assert (seen["kind"], seen["step"], first["op"], first["derived"]) == ("output", 2, "sqrt", True)
    assert seen["sample"]["dataset_index"] == 5 and "sqrt()" in seen["origin"]["code"]


@pytest.mark.parametrize(
    ("op", "function"), [("sqrt", lambda x: (x**2).sqrt()), ("acos", lambda x: (1 - x / 2).acos())]
)
def test_derivative_that_the_loss_asks_for(watch, op, function):
    """What is not finite in the loss is the derivative of the module's own operation."""

    class Radius(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(1, 1)

        def forward(self, x):
            return self.head(function(x[:, 2:]))

    model = Radius()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x, _ in DataLoader(Rows(), batch_size=4):
        optimizer.zero_grad()
        given = x.clone().requires_grad_()
        slope = torch.autograd.grad(model(given).sum(), given, create_graph=True)[0]
        slope.square().mean().backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"], seen["derived"]) == ("loss", 2, op, True)
    assert op in seen["origin"]["code"]


def test_samplers_that_draw_tensors(watch):
    order = torch.tensor([0, 1, 2, 3, 6, 7, 8, 5, 4, 9, 10, 11])
    train(Calls(lambda head, x: head(x / x[:, 2:])), Rows(), batch_sampler=list(order.split(4)))
    assert named(watch) == ("output", 2, "div", 5)


class Kinds(Dataset):
    """Sample 5 alone is of class 2."""

    def __len__(self):
        return 12

    def __getitem__(self, at):
        return torch.tensor([1.0, float(at), 1.0]), 2 if at == 5 else at % 2


def of_classes(watch, loss):
    train(nn.Linear(3, 3), Kinds(), loss=loss)
    seen = watch.verdict()
    return named(watch), seen["factor"], seen["computed"]["name"]


def test_the_sample_of_a_class_weight_that_is_not_finite(watch):
    weight = 12 / torch.tensor([6.0, 6.0, 0.0])
    entropy = nn.functional.cross_entropy
    expected = ("loss", 2, "nll_loss", 5), True, "weight"
    assert of_classes(watch, lambda out, y: entropy(out, y, weight=weight)) == expected


def test_of_class_weights_that_the_loss_holds(watch):
    loss = nn.CrossEntropyLoss(weight=12 / torch.tensor([6.0, 6.0, 0.0]))
    expected = ("loss", 2, "nll_loss", 5), True, "CrossEntropyLoss(weight=...)"
    assert of_classes(watch, loss) == expected


def test_of_weights_that_were_looked_up(watch):
    weight = 12 / torch.tensor([6.0, 6.0, 0.0])
    found = of_classes(
        watch, lambda out, y: (weight[y] * nn.functional.cross_entropy(out, y, reduction="none")).mean()
    )
    assert found == (("loss", 2, "mul", 5), True, "weight")
    assert watch.verdict()["computed"]["text"] == "12 / torch.tensor([6.0, 6.0, 0.0])"
    assert watch.verdict()["element"] == {"name": "weight", "index": [2], "value": "inf"}


def test_a_weight_of_a_class_that_no_sample_has_is_no_factor():
    out, y = nn.Linear(3, 4)(torch.randn(2, 3)), torch.tensor([0, 1])
    weight = torch.tensor([1.0, 1.0, 1.0, math.inf])
    assert bad_factor(nn.functional.cross_entropy(out, y, weight=weight).grad_fn) is None
    y[0] = 3
    found = bad_factor(nn.functional.cross_entropy(out, y, weight=weight).grad_fn)
    assert (found.op, found.bad.tolist()) == ("nll_loss", [True, False])


def test_the_weight_of_what_is_there():
    out, y = nn.Linear(3, 1)(torch.randn(2, 3)), torch.tensor([[0.0], [1.0]])
    loss = nn.functional.binary_cross_entropy_with_logits(out, y, pos_weight=torch.tensor([math.inf]))
    assert bad_factor(loss.grad_fn).op == "binary_cross_entropy_with_logits"


class Noised(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 1)

    def forward(self, x, share):
        return self.head(x) / share[:, None]


def drawn(x):
    shares = torch.linspace(0, 1, len(x))
    index = torch.randperm(len(x))
    return shares[index]


def of_data(x):
    return x[:, 2].clone()


@pytest.mark.parametrize(("share_of", "step", "sample"), [(drawn, 1, None), (of_data, 2, 5)])
def test_what_was_drawn_for_a_row_is_not_its_samples_fault(watch, share_of, step, sample):
    model = Noised()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for x, y in DataLoader(Rows(), batch_size=4):
        share = share_of(x)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x, share), y).backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["step"]) == ("output", "div", step)
    assert seen["sample"].get("dataset_index") == sample
    assert ("one_of" in seen["sample"]) == (sample is None)
