"""`--watch light`: the place is named, what was left out is no fault, results stay the same."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from trapline._watch import light as _watch_light  # noqa: E402
from trapline._watch import withheld  # noqa: E402


@pytest.fixture
def watch():
    _watch_light.install()
    yield _watch_light
    _watch_light.uninstall()


class Log(nn.Module):
    def forward(self, x):
        return x.log()


def train(model, batches, loss=lambda out: out.sum(), rate=0.1, kind=torch.optim.SGD):
    optimizer = kind(model.parameters(), lr=rate)
    for batch in batches:
        optimizer.zero_grad()
        loss(model(batch)).backward()
        optimizer.step()


def found():
    light = _watch_light._light
    light.finish()
    return light.found


GOOD = torch.ones(3, 2)


def test_operation_of_a_module_is_named(watch):
    model = nn.Sequential(nn.Identity(), Log(), nn.Linear(2, 1))
    train(model, [GOOD, GOOD, torch.tensor([[1.0, -1.0]]), GOOD])
    seen = found()
    assert (seen["kind"], seen["step"], seen["name"], seen["type"], seen["op"]) == (
        "output",
        3,
        "1",
        "Log",
        "log",
    )
    assert seen["origin"]["code"].strip() == "return x.log()"


def test_operation_of_the_loss_is_named(watch):
    model = nn.Linear(2, 1)
    nn.init.zeros_(model.weight), nn.init.constant_(model.bias, -1.0)
    train(model, [GOOD], loss=lambda out: out.log().sum())
    assert (found()["kind"], found()["op"], found()["step"]) == ("loss", "log", 1)


def test_gradient_and_its_operation(watch):
    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 1, bias=False)

        def forward(self, x):
            return self.fc(x).sqrt()

    model = Root()
    nn.init.zeros_(model.fc.weight)
    train(model, [torch.tensor([[0.0, 1.0]])])
    seen = found()
    assert (seen["kind"], seen["name"], seen["op"], seen["step"]) == ("gradient", "fc.weight", "sqrt", 1)


def test_data_and_its_index(watch):
    from trapline._fault.data import batches

    batches.install()
    try:
        data = torch.ones(8, 2)
        data[5, 1] = math.nan
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), batch_size=2)
        train(nn.Linear(2, 1), (batch for (batch,) in loader))
    finally:
        batches.uninstall()
    seen = found()
    assert (seen["kind"], seen["step"], seen["sample"]["dataset_index"]) == ("input", 3, 5)
    assert seen["element"] == {"name": "batch", "index": [1, 1], "value": "nan"}


def test_data_of_samples_put_together_row_after_row(watch):
    """As graphs are, with the offsets of their rows."""
    from trapline._fault.data import batches

    def collate(graphs):
        sizes = torch.tensor([0, *map(len, graphs)])
        return {"x": torch.cat(graphs), "ptr": sizes.cumsum(0)}

    batches.install()
    try:
        graphs = [torch.ones(1 + i % 3, 2) for i in range(12)]
        graphs[7][1, 0] = math.nan
        loader = torch.utils.data.DataLoader(graphs, batch_size=4, collate_fn=collate)
        train(nn.Linear(2, 1), (batch["x"] for batch in loader))
    finally:
        batches.uninstall()
    seen = found()
    assert (seen["kind"], seen["step"], seen["sample"]["dataset_index"]) == ("input", 2, 7)


def test_weights_before_the_first_step(watch):
    model = nn.Linear(2, 1)
    nn.init.constant_(model.bias, math.nan)
    train(model, [GOOD])
    assert (found()["kind"], found()["name"], found()["step"]) == ("weights", "bias", 1)


def test_update_by_the_optimizer(watch):
    class Bad(torch.optim.SGD):
        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.fill_(math.nan)

    train(nn.Linear(2, 1), [GOOD] * 3, kind=Bad)
    assert (found()["kind"], found()["step"]) == ("optimizer", 1)


def test_growth_is_told(watch):
    train(nn.Linear(2, 1, bias=False), [torch.ones(3, 2) * 100] * 60, lambda out: (out**2).sum(), rate=1.0)
    growth = found()["growth"]
    assert growth["of"] == "gradient norm" and growth["high"] > 100 * growth["low"]


def test_sum_that_overflows_is_no_fault(watch):
    model = nn.Linear(2, 1, bias=False)
    train(model, [torch.full((1, 2), 3e38)], rate=0.0)
    assert watch.recent()[0][2] is not None and found() is None


def test_no_step_is_no_fault(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for bad in (False, True, False, False):
        optimizer.zero_grad()
        loss = model(GOOD).sum() * (math.nan if bad else 1.0)
        loss.backward()
        if not bad:
            optimizer.step()
    assert found() is None


def test_gradients_that_were_mended_are_no_fault(watch):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (model(GOOD).sum() * math.nan).backward()
    for parameter in model.parameters():
        parameter.grad.nan_to_num_(0.0)
    optimizer.step()
    assert found() is None and watch.facts() is None


def test_masks_are_no_fault(watch):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            scores = self.fc(x).masked_fill(torch.tensor([True, False]), -math.inf)
            return scores.softmax(-1) * x

    train(Masked(), [GOOD] * 4)
    assert found() is None


def test_losses_that_stay_nan_without_a_step(watch):
    model = nn.Linear(2, 1)
    for _ in range(2 * withheld.LASTING):
        (model(GOOD) * math.nan).sum().backward()
    assert found() is None  # the program leaves them out


def test_evaluation_is_not_judged(watch):
    with torch.no_grad():
        nn.Sequential(Log())(torch.tensor([-1.0]))
    assert found() is None


def test_only_the_last_steps_are_kept(watch):
    train(nn.Linear(2, 1), [GOOD] * 60)
    assert [row[0] for row in watch.recent()] == list(range(11, 61))


def test_results_are_bit_identical():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x.log() if self.calls == 3 else x

    def run():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(), Counting(), nn.Linear(8, 2))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(5):  # the third is NaN, and left out
            optimizer.zero_grad()
            loss = model(torch.randn(6, 4)).sum()
            loss.backward()
            if loss.isfinite():
                optimizer.step()
        state = [value.flatten().double() for value in model.state_dict().values()]
        return torch.cat([*state, torch.tensor([model[3].calls]), torch.rand(3)])

    plain = run()
    _watch_light.install()
    try:
        assert torch.equal(run().nan_to_num(), plain.nan_to_num())
        assert _watch_light._light.second.places == 1 and found() is None
    finally:
        _watch_light.uninstall()


def test_nothing_is_left_behind():
    before = torch.autograd.backward
    _watch_light.install()
    assert torch.autograd.backward is not before
    model = nn.Linear(2, 1)
    train(model, [GOOD] * 3)
    assert not nn.modules.module._global_forward_hooks  # the roots are known
    _watch_light.uninstall()
    assert torch.autograd.backward is before and not model._forward_pre_hooks
    assert "_compiled_call_impl" not in vars(model)


def test_a_step_that_calls_its_base_classes_is_one(watch):
    class Quiet(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    model = nn.Linear(2, 1)
    torch.optim.SGD(model.parameters(), lr=0.1)  # hooks go into the class, too
    optimizer = Quiet(model.parameters(), lr=0.1)
    for turn in range(1, 45):
        optimizer.zero_grad()
        (model(torch.ones(1, 2)).sum() / float(turn != 40)).backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["step"], seen["op"]) == (40, "div")
