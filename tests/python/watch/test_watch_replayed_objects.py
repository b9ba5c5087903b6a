"""A loss made outside of modules, by code that notes what it does: in mappings, lists and objects."""

from __future__ import annotations

import dataclasses

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from trapline._fault.replay import rewrite, session  # noqa: E402

BAD = 3  # the step


@pytest.fixture
def watch(watch_that_looks):
    return watch_that_looks


def begun():
    model = nn.Linear(2, 2, bias=False)
    nn.init.constant_(model.weight, 1.0)
    return model, torch.optim.SGD(model.parameters(), lr=0.0)


def batches():
    """Of the bad step one row is 0."""
    for turn in range(1, BAD + 2):
        x = torch.ones(4, 2)
        x[2] *= turn != BAD
        yield x


def train(loss_of):
    model, optimizer = begun()
    for x in batches():
        loss = loss_of(model(torch.ones(4, 2)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Notes:
    """A loss that counts, and keeps what it has seen."""

    def __init__(self):
        self.count, self.seen, self.parts = 0, {}, []

    def unit(self, v):
        self.count += 1
        return v / v.norm(dim=1, keepdim=True)

    def __call__(self, out, x):
        self.seen[self.count] = out.mean().item()
        self.parts.append(1)
        return (self.unit(x) * out).mean() + 0 * self.seen[self.count - 1]


class Sums:
    """Gathers its terms in a list of its own."""

    def __init__(self):
        self.terms = []

    def __call__(self, out, x):
        self.terms.clear()
        self.terms.append(out.mean())
        self.terms.append((x / x.norm(dim=1, keepdim=True)).mean())
        return sum(self.terms[-2:])


def noted():
    seen = {"turns": 0}

    def loss(out, x):
        seen["turns"] += 1
        return (out * x / x.norm(dim=1, keepdim=True)).mean() / (seen["turns"] + 1)

    return loss, seen


class Pair:
    def __init__(self, out, x):
        self.out, self.x = out, x

    def share(self):
        return self.x / self.x.norm(dim=1, keepdim=True)


@dataclasses.dataclass
class Made:
    loss: torch.Tensor
    share: torch.Tensor


def of_pair(out, x):
    pair = Pair(out, x)
    return (pair.share() * pair.out).mean()


def of_object(out, x):
    share = x / x.norm(dim=1, keepdim=True)
    return Made((share * out).mean(), share)


def line_of(seen):
    return seen["origin"]["code"].strip()


def test_what_a_loss_notes_is_noted_once(watch):
    notes = Notes()
    train(notes)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["op"]) == ("loss", BAD, "div")
    assert line_of(seen) == "return v / v.norm(dim=1, keepdim=True)"
    assert (notes.count, len(notes.seen), len(notes.parts)) == (BAD + 1, BAD + 1, BAD + 1)


def test_terms_in_a_list_of_the_objects(watch):
    sums = Sums()
    train(sums)
    seen = watch.verdict()
    assert (seen["step"], seen["op"]) == (BAD, "div")
    assert line_of(seen).startswith("self.terms.append((x / x.norm")
    assert len(sums.terms) == 2


def test_a_mapping_of_the_function_around(watch):
    loss, turns = noted()
    train(loss)
    seen = watch.verdict()
    assert (seen["step"], seen["op"]) == (BAD, "div")
    assert turns == {"turns": BAD + 1}


def test_an_object_that_the_loss_makes(watch):
    train(of_pair)
    seen = watch.verdict()
    assert (seen["step"], seen["op"]) == (BAD, "div")
    assert line_of(seen) == "return self.x / self.x.norm(dim=1, keepdim=True)"


def test_a_member_of_what_a_function_gave(watch):
    model, optimizer = begun()
    for x in batches():
        made = of_object(model(torch.ones(4, 2)), x)
        loss = made.loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["step"], seen["op"]) == (BAD, "div")
    assert line_of(seen) == "share = x / x.norm(dim=1, keepdim=True)"


class Opens:
    made = 0

    def __del__(self):
        Opens.made -= 1


class Layer(nn.Module):
    pass


class Kept:
    """Writes into what belongs to its class."""

    all: dict = {}

    def __init__(self, x):
        Kept.all["x"] = x


def test_objects_that_do_more_are_not_made():
    running = session.Session(lambda module, stack: module, lambda value: None)
    with pytest.raises(rewrite.CannotRun):
        running._callables.of(Opens)
    with pytest.raises(rewrite.CannotRun):
        running._callables.of(Layer)
    with running.running(None):
        running._callables.of(Kept)(torch.ones(1))
    assert Kept.all == {}


def test_a_list_that_is_in_itself_and_one_that_is_too_long(monkeypatch):
    running = session.Session(lambda module, stack: module, lambda value: None)
    ring: list = [1]
    ring.append(ring)
    with running.running(None):
        made = running._container(ring)
        assert made is not ring and made[1] is made
        assert running._container(ring) is made and running._container(made) is made
        monkeypatch.setattr(session, "_MAX_ENTRIES", 3)
        long = [1, 2]
        assert running._container(long) is long


class Rate:
    """Weights by how fast each loss has fallen."""

    def __init__(self):
        self.history = []

    def weights(self):
        rate = self.history[-1] / self.history[-2]
        return torch.softmax(rate, 0)


LINE_OF_RATE = Rate.weights.__code__.co_firstlineno + 1


def test_what_made_the_factor_of_a_loss_in_a_function_that_has_returned(watch):
    model, optimizer = begun()
    rate = Rate()
    rate.history = [torch.ones(2), torch.ones(2)]
    for turn in range(1, BAD + 2):
        w = rate.weights()
        optimizer.zero_grad()
        (w * model(torch.ones(4, 2)).mean(0)).sum().backward()  # no variable holds the loss
        optimizer.step()
        rate.history.append(torch.tensor([1.0, float(turn != BAD - 2)]))
    seen = watch.verdict()
    assert (seen["kind"], seen["factor"], seen["step"]) == ("loss", True, BAD)
    assert (seen["computed"]["name"], seen["factor_by"]) == ("w", "div")
    assert seen["origin"]["line"] == LINE_OF_RATE


def test_forces_that_are_asked_for_by_the_program(watch):
    """`acos` at 1 is finite, its derivative is not; only what is asked of the energy shows that."""
    model, optimizer = begun()
    for turn in range(1, BAD + 2):
        p = torch.full((2, 2), 0.5)
        p[1, 0] = 1.0 if turn == BAD else 0.25
        p.requires_grad_(True)
        energy = (model(p) * p.acos()).sum()
        force = -torch.autograd.grad(energy, p, create_graph=True)[0]
        loss = energy.square() + force.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seen = watch.verdict()
    first = seen.get("inf_before", seen)
    assert (seen["kind"], seen["step"], first["op"], first["derived"]) == ("loss", BAD, "acos", True)


class Sets(nn.Module):
    """The probability of a set of items, by a determinant: 0 where one is in it twice."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.items = nn.Parameter(torch.randn(12, 6))

    def log_prob(self, items):
        v = self.items[torch.as_tensor(items)]
        return torch.logdet(v @ v.T)


@pytest.mark.parametrize("good", [False, True])
def test_a_sum_that_nothing_holds_and_the_record_of_a_list(watch, good):
    orders = [[n % 12, (n + 1) % 12] for n in range(20)]
    orders[13] = [5, 8] if good else [5, 5]
    orders[3], orders[15] = [2, 7], [1, 9]  # each stands once
    model = Sets()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for start in range(0, 20, 5):
        chunk = orders[start : start + 5]
        likelihood = torch.stack([model.log_prob(one) for one in chunk]).mean()
        penalty = model.items.square().mean()
        optimizer.zero_grad()
        (penalty - likelihood).backward()
        optimizer.step()
    seen = watch.verdict()
    if good:
        assert seen is None
        return
    assert (seen["step"], seen["op"], seen["origin"]["function"]) == (3, "linalg.slogdet", "log_prob")
    assert (seen["sample"]["dataset"]["name"], seen["sample"]["dataset_index"]) == ("orders", 13)


class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return (x / x.sum() * self.scale).sum()


@pytest.mark.parametrize("bad, index", [((7,), 7), ((7, 8), None)])
def test_the_only_bad_one_of_several_calls(watch, bad, index):
    numpy = pytest.importorskip("numpy")
    rows = [numpy.full(3, 1.0 + n, dtype=numpy.float32) for n in range(12)]
    for at in bad:
        rows[at] = numpy.array([1.0 + at, -1.0 - at, 0.0], dtype=numpy.float32)
    model = Filter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for start in range(0, 12, 3):
        optimizer.zero_grad()
        loss = sum(model(torch.from_numpy(rows[at])) for at in range(start, start + 3)) / 3
        loss.backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["op"], seen["step"]) == ("div", 3)
    assert seen.get("sample", {}).get("dataset_index") == index
