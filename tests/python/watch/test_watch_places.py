"""What `--watch light` says of a place: only what it has seen."""

from __future__ import annotations

import math
from collections import UserDict

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from trapline._watch import light, second  # noqa: E402

GOOD = torch.ones(3, 2)


@pytest.fixture
def watch():
    light.install()
    yield light
    light.uninstall()


def squares(out):
    return (out**2).sum()


def train(model, batches, loss=lambda out: out.sum(), kind=torch.optim.SGD, **options):
    optimizer = kind(model.parameters(), **{"lr": 0.1, **options})
    for batch in batches:
        optimizer.zero_grad()
        loss(model(batch)).backward()
        optimizer.step()


def calls(function, *modules):
    """A module that holds `modules`, and whose forward is `function` of it and the batch."""

    class Calls(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(modules)

        def forward(self, x):
            return function(self.parts, x)

    return Calls()


def test_product_that_overflows_is_no_mask(watch):
    model = nn.Sequential(nn.Linear(2, 2))
    nn.init.constant_(model[0].weight, 3e38)
    train(model, [GOOD], loss=squares)
    seen = watch.verdict()
    assert (seen["kind"], seen["name"], seen["op"], seen["what"]) == ("output", "0", "addmm", "inf")
    assert seen["finite_before"]


@pytest.mark.parametrize("function", [lambda x: x + x, lambda x: x * 2.0, lambda x: x - (-x)])
def test_sum_and_product_that_overflow(watch, function):
    train(calls(lambda parts, x: function(parts[0](x) * 0 + 3e38), nn.Linear(2, 1)), [GOOD], squares)
    seen = watch.verdict()
    assert (seen["kind"], seen["op"]) in [("output", "add"), ("output", "mul"), ("output", "sub")]


def test_product_with_infinity_is_a_mask(watch):
    def attend(parts, x):
        scores = parts[0](x)
        return (scores + torch.tensor([[0.0], [0.0], [1.0]]) * -1e30 * math.inf).nan_to_num() * x.log().sum()

    train(calls(attend, nn.Linear(2, 1)), [GOOD, -GOOD])
    assert watch.verdict()["op"] == "log"


def test_output_of_a_kind_of_its_own_is_followed(watch):
    model = calls(lambda parts, x: UserDict(out=parts[0](x) / 0.0), nn.Linear(2, 1))
    train(model, [GOOD], loss=lambda out: out["out"].sum())
    assert (watch.verdict()["kind"], watch.verdict()["op"]) == ("output", "div")


def test_distribution_as_output_is_followed(watch):
    model = calls(
        lambda parts, x: torch.distributions.Normal(parts[0](x) / 0.0, 1.0, validate_args=False),
        nn.Linear(2, 1),
    )
    train(model, [GOOD], loss=lambda out: out.mean.sum())
    assert (watch.verdict()["kind"], watch.verdict()["op"]) == ("output", "div")


def test_no_place_is_said_where_none_was_looked_at(watch, monkeypatch):
    monkeypatch.setattr(second, "_MAX_PLACES", 0)
    train(nn.Linear(2, 1), [GOOD], loss=lambda out: out.sum() * math.nan)
    assert watch.verdict()["kind"] == "loss" and watch.verdict()["looked"] is False


def test_no_place_is_said_where_the_output_is_not_known(watch):
    hidden = []
    model = calls(lambda parts, x: hidden.append(parts[0](x) * math.nan), nn.Linear(2, 1))
    train(model, [GOOD], loss=lambda _: hidden[-1].sum())
    assert watch.verdict()["kind"] == "loss" and watch.verdict()["looked"] is False


def test_the_loss_where_the_output_is_finite(watch):
    train(nn.Linear(2, 1), [GOOD], loss=lambda out: out.sum() * math.nan)
    seen = watch.verdict()
    assert seen["kind"] == "loss" and seen["looked"] and seen["input_finite"] and "half" not in seen


def test_float16_is_said_where_it_was_seen(watch):
    model = calls(lambda parts, x: parts[0](x).half() * 6e4 * 6e4, nn.Linear(2, 1))
    train(model, [GOOD], loss=lambda out: out.float().sum())
    assert watch.verdict()["half"] is True


def loaded(data, model, **options):
    from trapline._fault.data import batches

    batches.install()
    try:
        loader = torch.utils.data.DataLoader(data, batch_size=2)
        train(model, (batch for (batch,) in loader), **options)
    finally:
        batches.uninstall()


def test_infinity_in_the_data_of_a_subset(watch):
    data = torch.ones(8, 2)
    data[5, 1] = math.inf
    subset = torch.utils.data.Subset(torch.utils.data.TensorDataset(data), [7, 6, 5, 4])
    loaded(subset, nn.Linear(2, 1))
    seen = watch.verdict()
    assert (seen["kind"], seen["what"], seen["step"]) == ("input", "inf", 2)
    assert (seen["sample"]["dataset_index"], seen["sample"]["base_index"]) == (2, 5)


def test_infinity_in_the_data_that_the_output_hides(watch):
    data = torch.ones(8, 2)
    data[5, 1] = math.inf
    loaded(torch.utils.data.TensorDataset(data), nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()))
    seen = watch.verdict()
    assert (seen["kind"], seen["what"], seen["step"]) == ("input", "inf", 3)
    assert seen["sample"]["dataset_index"] == 5


def test_missing_values_that_are_filled_make_no_bad_gradient(watch):
    model = calls(lambda parts, x: parts[0](x.nan_to_num()).sqrt(), nn.Linear(2, 1, bias=False))
    nn.init.zeros_(model.parts[0].weight)
    train(model, [torch.tensor([[1.0, math.nan]])])
    assert (watch.verdict()["kind"], watch.verdict()["op"]) == ("gradient", "sqrt")


def test_weights_that_were_bad_from_the_start_are_not_the_optimizers(watch):
    model = nn.Embedding(5, 2)
    with torch.no_grad():
        model.weight[4] = math.inf
    train(model, [torch.tensor([0, 1])] * 3 + [torch.tensor([4])])
    seen = watch.verdict()
    if seen is None:
        seen = light._light.suspect.fact if light._light.suspect else None
    assert seen is None or seen["kind"] == "weights"
    train(nn.Sequential(model, nn.Linear(2, 1)), [torch.tensor([0, 1])] * 3 + [torch.tensor([4])])
    assert (watch.verdict()["kind"], watch.verdict()["what"]) == ("weights", "inf")


def test_update_by_finite_gradients(watch):
    def with_rate(parameters, lr):
        optimizer = torch.optim.SGD(parameters, lr)
        optimizer.param_groups[0]["lr"] = math.nan
        return optimizer

    train(nn.Linear(2, 1), [GOOD] * 3, kind=with_rate)
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["gradients_finite"]) == ("optimizer", 1, True)


def test_own_numbers_of_a_module(watch):
    """A weight that is divided by its norm of 0 is not of the data; no line of the program has done it."""
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    with torch.no_grad():
        layer.parametrizations.weight.original1[0] = 0.0
    train(nn.Sequential(nn.Linear(2, 2), layer), [torch.ones(3, 2)])
    seen = watch.verdict()
    assert (seen["kind"], seen["op"]) == ("output", "_weight_norm_interface")
    assert (seen["own"], seen["finite_before"], "sample" in seen, "origin" in seen) == (
        True,
        True,
        False,
        False,
    )


def test_data_are_not_own_numbers(watch):
    layer = nn.Linear(2, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, -1.0], [1.0, -1.0]]))  # Inf - Inf
    train(calls(lambda parts, x: parts[0]((x - 1).log()), layer), [GOOD])
    seen = watch.verdict()
    assert (seen["inf_before"]["op"], "own" in seen) == ("log", False)


def test_root_of_a_variance_of_one_row(watch):
    train(nn.Linear(2, 2), [GOOD, GOOD[:1]], loss=lambda out: (out.var(0) + 1e-4).sqrt().sum())
    assert (watch.verdict()["kind"], watch.verdict()["op"], watch.verdict()["step"]) == ("loss", "var", 2)


def test_deviation_of_one_row(watch):
    train(nn.Linear(2, 2), [GOOD[:1]], loss=lambda out: (out - out.std(0)).sum())
    assert (watch.verdict()["kind"], watch.verdict()["op"]) == ("loss", "std")


def test_root_of_a_nan_is_not_accused(watch):
    train(nn.Linear(2, 2), [GOOD], loss=lambda out: (out.detach() * math.nan * out).exp().sqrt().sum())
    seen = watch.verdict()
    assert (seen["op"], seen["factor"]) == ("mul", True)


def test_exponential_that_overflows(watch):
    train(nn.Linear(2, 2), [GOOD], loss=lambda out: (out + 1000.0).exp().sum())
    assert (watch.verdict()["kind"], watch.verdict()["op"]) == ("loss", "exp")


def test_an_error_of_pytorchs_own_is_told_where_it_began(watch):
    from trapline._exceptions import host_facts

    model = nn.Linear(2, 2)
    train(model, [GOOD, GOOD * math.nan])
    with pytest.raises(ValueError) as raised:
        torch.distributions.Categorical(logits=model(GOOD), validate_args=True)
    facts = host_facts.collect(raised.value)
    assert facts["watch"]["kind"] == "input" and facts["watch"]["step"] == 2


class Rows(torch.utils.data.Dataset):
    """Sample 5 has a target that is not finite."""

    def __len__(self):
        return 8

    def __getitem__(self, at):
        return torch.ones(2) * at, torch.tensor([math.nan if at == 5 else 1.0])


@pytest.mark.parametrize(
    "loss",
    [
        nn.functional.mse_loss,
        lambda out, y: (out - y).abs().mean(),
        lambda out, y: ((out - y / 3.0) ** 2).mean(),
    ],
)
def test_targets_are_named_with_their_sample(watch, loss):
    from trapline._fault.data import batches

    batches.install()
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for x, y in torch.utils.data.DataLoader(Rows(), batch_size=2):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["kind"], seen["step"], seen["what"]) == ("target", 3, "nan")
    assert seen["sample"]["dataset_index"] == 5


def test_targets_that_a_mask_leaves_out_are_not_accused(watch):
    model = nn.Linear(2, 1)
    target = torch.tensor([[1.0], [math.nan], [1.0]])

    def loss(out):
        known = torch.where(target.isnan(), 0.0, (out - target) ** 2)
        return known.mean() + (out * 0).sum().log()

    train(model, [GOOD], loss=loss)
    assert watch.verdict()["kind"] == "loss" and watch.verdict()["op"] == "log"


class Pool(nn.Module):
    """The largest of what falls into each cell; a cell of nothing stays as it began."""

    def forward(self, x, cell):
        out = x.new_full((4, 2), -math.inf)
        return out.index_reduce(0, cell, x, "amax")


def test_an_infinity_that_was_put_there_and_that_nothing_has_replaced(watch):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool, self.head = Pool(), nn.Linear(2, 1)
            self.head.weight.data = torch.tensor([[1.0, -1.0]])  # -inf and inf make NaN

        def forward(self, cell):
            return self.head(self.pool(torch.rand(5, 2), cell))

    full, gap = torch.tensor([0, 1, 2, 3, 3]), torch.tensor([0, 1, 3, 3, 3])
    train(Net(), [full, full, gap])
    seen = watch.verdict()
    assert (seen["name"], seen["op"], seen["finite_before"]) == ("head", "addmm", False)
    met = seen["met"]
    assert (met["op"], met["index"], met["bad"], met["total"]) == ("new_full", [2, 0], 2, 8)
    assert met["origin"]["code"].strip() == "out = x.new_full((4, 2), -math.inf)"


def test_of_an_operation_that_made_both_the_nan_is_placed(watch):
    low = torch.tensor([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    high = torch.tensor([[1.0, 1.0], [2.0, 1.0], [1.0, 0.0]])
    model = calls(lambda parts, x: parts[0](high) * (high / x), nn.Linear(2, 2))
    train(model, [low])
    seen = watch.verdict()
    assert (seen["op"], seen["what"]) == ("div", "nan")
    assert seen["part"] == {"index": [2, 1], "bad": 1, "total": 6}


def test_a_line_of_a_library_where_none_is_the_programs(watch, tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "masked_net"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = torch.nn.Linear(2, 1)\n\n    def forward(self, x):\n        mask = x[:, :1] > 5\n"
        "        return (self.fc(x) * mask).sum() / mask.sum()\n"
    )
    monkeypatch.syspath_prepend(str(package.parent))
    import masked_net

    train(masked_net.Net(), [GOOD])
    seen = watch.verdict()
    assert (seen["kind"], seen["op"]) == ("output", "div")
    assert seen["origin"]["file"].endswith("masked_net/__init__.py") and seen["origin"]["line"] == 11
    assert seen["origin"]["user"] is False
