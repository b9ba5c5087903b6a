"""`--watch light` in training loops of many kinds: each broken one is told, its clean twin is not."""

from __future__ import annotations

import copy
import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from trapline._watch import light  # noqa: E402

GOOD = torch.ones(3, 2)
BAD = torch.tensor([[1.0, -1.0]])


class Log(nn.Module):
    def forward(self, x):
        return x.log()


@pytest.fixture
def watch():
    light.install()
    yield light
    light.uninstall()


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1)


def gan(steps, bad_in=None, detached=True, critics=1):
    """`bad_in`: ("d" or "g", step) whose loss is NaN."""
    torch.manual_seed(0)
    g, d = nn.Sequential(nn.Linear(2, 2)), nn.Sequential(nn.Linear(2, 1))
    of_g, of_d = sgd(g), sgd(d)

    def times(name, step):
        return math.nan if bad_in == (name, step) else 1.0

    for step in range(1, steps + 1):
        fake = g(GOOD)
        for _ in range(critics):
            of_d.zero_grad()
            loss = (d(GOOD) - d(fake.detach())).mean() * times("d", step)
            loss.backward()
            of_d.step()
        of_g.zero_grad()
        (d(fake).mean() * times("g", step)).backward()
        of_g.step()


@pytest.mark.parametrize("which", ["d", "g"])
def test_two_optimizers_count_one_step(watch, which):
    gan(5, (which, 3))
    assert (watch.verdict()["kind"], watch.verdict()["step"]) == ("loss", 3)


def test_two_optimizers_that_step_after_both_losses(watch):
    a, b = nn.Linear(2, 1), nn.Linear(2, 1)
    of_a, of_b = sgd(a), sgd(b)
    for step in range(1, 4):
        of_a.zero_grad(), of_b.zero_grad()
        a(GOOD).sum().backward()
        (b(GOOD).sum() * (math.nan if step == 2 else 1)).backward()
        of_a.step()  # not the one that is spoiled
        of_b.step()
    assert (watch.verdict()["kind"], watch.verdict()["step"]) == ("loss", 2)


def test_training_that_goes_on_with_a_new_optimizer(watch):
    """A checkpoint: model and optimizer are made anew; steps are those of the run."""
    for part in range(2):
        model = nn.Linear(2, 1)
        optimizer = sgd(model)
        for step in range(3):
            optimizer.zero_grad()
            (model(GOOD).sum() * (math.nan if (part, step) == (1, 1) else 1.0)).backward()
            optimizer.step()
    assert watch.verdict()["step"] == 5


def test_inner_optimizers_do_not_count_for_the_outer_one(watch):
    outer = nn.Linear(2, 1)
    meta = sgd(outer)
    for step in range(1, 5):
        for _ in range(3):
            inner = sgd(copy.deepcopy(outer))
            inner.step()
        meta.zero_grad()
        (outer(GOOD).sum() * (math.nan if step == 4 else 1.0)).backward()
        meta.step()
    assert watch.verdict()["step"] == 4


def test_generator_is_found_though_another_optimizer_stepped(watch):
    g, d = nn.Sequential(nn.Linear(2, 2), Log()), nn.Sequential(nn.Linear(2, 1))
    with torch.no_grad():
        g[0].weight.fill_(1.0), g[0].bias.fill_(0.0)
    of_g, of_d = sgd(g), sgd(d)
    for step in range(1, 4):
        fake = g(GOOD if step < 3 else -GOOD)
        of_d.zero_grad()
        d(GOOD).mean().backward()
        of_d.step()
        of_g.zero_grad()
        d(fake).mean().backward()
        of_g.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["op"], seen["name"], seen["step"]) == ("output", "log", "1", 3)


def test_what_another_module_made_is_not_called_data(watch):
    g, d = nn.Sequential(nn.Linear(2, 2), Log()), nn.Sequential(nn.Linear(2, 1))
    of_d = sgd(d)
    for sign in (1, -1):
        of_d.zero_grad()
        with torch.no_grad():
            g[0].weight.fill_(float(sign)), g[0].bias.fill_(0.0)
            fake = g(GOOD)
        d(fake).mean().backward()
        of_d.step()
    seen = watch.verdict()
    assert seen["kind"] == "input" and seen["type"] == "Sequential" and "sample" not in seen


@pytest.mark.parametrize("critics", [1, 5])
def test_good_gan(watch, critics):
    gan(6, critics=critics)
    assert watch.verdict() is None


def accumulate(bad=None, steps=3, parts=4):
    model = nn.Sequential(nn.Linear(2, 1))
    optimizer = sgd(model)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        for part in range(parts):
            (model(GOOD).mean() * (math.nan if bad == (step, part) else 1)).backward()
        optimizer.step()


def test_accumulation(watch):
    accumulate((2, 1))
    assert (watch.verdict()["kind"], watch.verdict()["step"]) == ("loss", 2)


def test_good_accumulation(watch):
    accumulate()
    assert watch.verdict() is None and len(watch.recent()) == 3


def closures(model, kind, steps=4, **options):
    optimizer = kind(model.parameters(), **options)
    for step in range(steps):

        def closure(step=step):
            optimizer.zero_grad()
            loss = (model(GOOD) ** 2).mean() * (math.nan if model.bad and step == 2 else 1)
            loss.backward()
            return loss

        optimizer.step(closure)


@pytest.mark.parametrize("bad", [False, True])
@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_lbfgs(watch, bad, line_search):
    torch.manual_seed(1)
    model = nn.Linear(2, 1)
    model.bad = bad
    closures(model, torch.optim.LBFGS, line_search_fn=line_search, lr=0.1, max_iter=4)
    seen = watch.verdict()
    if not all(bool(p.isfinite().all()) for p in model.parameters()):
        assert bad and seen["step"] == 3
    else:
        assert seen is None


def test_trial_points_of_a_line_search_are_no_fault(watch):
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1.0)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        w = model(torch.ones(1, 1))
        loss = (w - 2 * w.log()).sum()  # log of the points beyond zero is NaN
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    assert bool(model.weight.isfinite().all()) and watch.verdict() is None


def test_program_that_puts_its_weights_back(watch):
    model = nn.Linear(2, 1)
    optimizer = sgd(model)
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    for step in range(6):
        optimizer.zero_grad()
        loss = model(GOOD).sum() * (math.nan if step == 2 else 1)
        loss.backward()
        optimizer.step()
        if not loss.isfinite():
            model.load_state_dict(kept)
    assert watch.verdict() is None


def test_program_that_catches_and_goes_on(watch):
    model = nn.Linear(2, 1)
    optimizer = sgd(model)
    for step in range(12):
        optimizer.zero_grad()
        try:
            loss = model(GOOD).sum() * (math.nan if step % 2 else 1)
            loss.backward()
            if not loss.isfinite():
                raise FloatingPointError("left out")
            optimizer.step()
        except FloatingPointError:
            continue
    assert watch.verdict() is None and watch.facts() is not None  # the last one, until it is known


def test_finite_gradients_of_a_step_that_is_left_out(watch):
    model = nn.Linear(2, 1)
    optimizer = sgd(model)
    for step in range(6):
        optimizer.zero_grad()
        loss = model(GOOD).sum() + (math.nan if step == 2 else 0)
        loss.backward()
        if loss.isfinite():
            optimizer.step()
    assert watch.verdict() is None


def test_loss_without_a_gradient_is_no_fault(watch):
    model = nn.Linear(2, 3)
    optimizer = sgd(model)
    for step in range(4):
        optimizer.zero_grad()
        labels = torch.full((3,), -100 if step == 2 else 1)
        nn.functional.cross_entropy(model(GOOD), labels).backward()  # the mean of no label
        optimizer.step()
    assert watch.verdict() is None


def test_evaluation_between_steps(watch):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    optimizer = sgd(model)
    for step in range(4):
        model.eval()
        model(torch.full((3, 2), math.nan))  # with gradients on, and bad
        model.train()
        optimizer.zero_grad()
        (model(GOOD).mean() * (math.nan if step == 3 else 1)).backward()
        optimizer.step()
    assert (watch.verdict()["kind"], watch.verdict()["step"]) == ("loss", 4)


def test_module_that_is_called_by_keywords_only(watch):
    class Keywords(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 1)

        def forward(self, *, x, scale=1.0):
            return self.fc(x.log() * scale)

    model = Keywords()
    optimizer = sgd(model)
    for batch in (GOOD, GOOD, GOOD, BAD):
        optimizer.zero_grad()
        model(x=batch, scale=2.0).sum().backward()
        optimizer.step()
    assert (watch.verdict()["op"], watch.verdict()["step"]) == ("log", 4)


def test_first_step_of_weights_in_no_module(watch):
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    (weight - 2.0).log().sum().backward()
    optimizer.step()
    assert (watch.verdict()["kind"], watch.verdict()["op"], watch.verdict()["step"]) == ("loss", "log", 1)


@pytest.mark.parametrize("bad", [False, True])
def test_sparse_gradients(watch, bad):
    model = nn.Embedding(5, 2, sparse=True)
    optimizer = torch.optim.SparseAdam(model.parameters())
    for step in range(4):
        optimizer.zero_grad()
        (model(torch.tensor([1, 1, 3])).sum() * (math.inf if bad and step == 2 else 1)).backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen is not None) == bad and (not bad or seen["step"] == 3)


def scaled(steps, bad):
    model = nn.Linear(2, 1)
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        scaler.scale(model(GOOD).sum() * (math.nan if step in bad else 1)).backward()
        scaler.step(optimizer)
        scaler.update()


def test_scaler_that_leaves_a_step_out(watch):
    scaled(10, {2, 3, 7})
    assert watch.verdict() is None


def test_scaler_that_leaves_out_all_steps_to_the_end(watch):
    scaled(10, set(range(4, 11)))
    assert (watch.verdict()["kind"], watch.verdict()["step"]) == ("loss", 4)


def test_nan_that_a_model_masks_is_not_accused(watch):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            safe = torch.where(x > 0, x.log(), 0.0)  # NaN that is not used
            with torch.no_grad():
                bad = (x.sum() - 2.0).sqrt()  # this one is
            return self.fc(safe) * bad

    model = Masked()
    optimizer = sgd(model)
    for batch in (torch.tensor([[4.0, 1.0]]), BAD):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    assert watch.verdict()["op"] == "sqrt"


def test_missing_values_that_a_model_fills_are_not_accused(watch):
    class Filled(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 1)

        def forward(self, x, broken=False):
            out = self.fc(x.nan_to_num())
            return (out - 1e9).log() if broken else out

    model = Filled()
    optimizer = sgd(model)
    missing = torch.tensor([[1.0, math.nan]])
    for broken in (False, False, True):
        optimizer.zero_grad()
        model(missing, broken).sum().backward()
        optimizer.step()
    assert (watch.verdict()["op"], watch.verdict()["step"]) == ("log", 3)


def test_weight_that_is_infinite_on_purpose(watch):
    class Biased(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 3)
            self.mask = nn.Parameter(torch.tensor([0.0, 0.0, -math.inf]))

        def forward(self, x):
            return (self.fc(x) + self.mask).softmax(-1)

    model = Biased()
    optimizer = sgd(model)
    for step in range(4):
        optimizer.zero_grad()
        (model(GOOD)[:, 0].mean() * (math.inf if step == 1 else 1)).backward()
        for parameter in model.parameters():
            parameter.grad.nan_to_num_(0.0, 0.0, 0.0)
        optimizer.step()
    assert watch.verdict() is None


def test_dropout_draws_the_same_numbers_again(watch):
    class Dropped(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.drop = nn.Linear(8, 8), nn.Dropout(0.5)

        def forward(self, x, limit):
            kept = self.drop(torch.ones(64))
            seen.append(kept.clone())
            return self.fc(x) * (kept.sum() - limit).sqrt()

    torch.manual_seed(0)
    seen = []
    model = Dropped()
    optimizer = sgd(model)
    for limit in (0.0, 0.0, 0.0, 1e9):
        optimizer.zero_grad()
        model(torch.ones(2, 8), limit).sum().backward()
        state = torch.get_rng_state()
        optimizer.step()
    assert watch.verdict()["op"] == "sqrt"
    assert len(seen) == 5 and torch.equal(seen[3], seen[4]) and torch.equal(torch.get_rng_state(), state)
    assert light._light.second.places == 1


def test_generator_is_drawn_from_again_as_in_the_first_run(watch):
    drawn = []

    class Noisy(nn.Module):
        def forward(self, x):
            drawn.append(torch.rand(3))
            return x * math.nan if len(calls) == 3 else x

    calls = []
    model = nn.Sequential(nn.Linear(2, 2), Noisy())
    optimizer = sgd(model)
    kept = drawn.copy
    copies = []
    for _ in range(3):
        calls.append(1)
        optimizer.zero_grad()
        loss = model(GOOD).sum()
        copies = kept()
        loss.backward()
        optimizer.step()
    assert len(copies) == 3 and len(drawn) == 4 and torch.equal(drawn[2], drawn[3])


def test_arguments_and_lists_are_left_as_they_were(watch):
    class Greedy(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 1)
            self.seen = []

        def forward(self, x):
            self.seen.append(1)
            self.last = len(self.seen)
            return self.fc(x.add_(1.0)) * (math.nan if len(self.seen) == 2 else 1)

    model = Greedy()
    optimizer = sgd(model)
    batch = torch.zeros(1, 2)
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(batch).sum()
        loss.backward()
    assert batch.tolist() == [[2.0, 2.0]] and model.seen == [1, 1] and model.last == 2


def test_norm_at_zero_is_not_accused(watch):
    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2, bias=False)

        def forward(self, x):
            out = self.fc(x)
            return out.norm(dim=-1) + out.abs().sum(-1).pow(0.5)

    model = Root()
    nn.init.zeros_(model.fc.weight)
    optimizer = sgd(model)
    model(GOOD).sum().backward()
    optimizer.step()
    assert (watch.verdict()["kind"], watch.verdict()["op"]) == ("gradient", "pow")
