"""What happens between `backward` and the loss after it, in the steps that are not looked at."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from trapline._fault.data import batches  # noqa: E402
from trapline._watch import light  # noqa: E402

GOOD = torch.tensor([[1.0, 2.0], [0.5, 1.0], [2.0, 1.0]])
BAD = 20  # the step


def train(model, optimizer, loss_of, before_step=lambda step: None, steps=BAD + 2):
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss_of(model(GOOD), step).backward()
        before_step(step)
        optimizer.step()


def mean(out, _step):
    return out.mean()


def test_gradients_that_are_divided_by_a_norm_of_zero(watch):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def rescale(_step):
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        for p in model.parameters():
            p.grad.mul_(1.0 / norm)

    train(model, optimizer, lambda out, step: out.mean() * float(step != BAD), rescale)
    found = watch.verdict()
    assert (found["kind"], found["step"], found["changed"]) == ("gradient", BAD, True)


def test_a_rate_that_is_nan_for_one_step(watch):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def schedule(step):
        optimizer.param_groups[0]["lr"] = math.nan if step == BAD else 1e-3

    train(model, optimizer, mean, schedule)
    found = watch.verdict()
    assert (found["kind"], found["step"], found["setting"]) == ("optimizer", BAD, "lr=nan")
    assert found["gradients_finite"] is True


def test_a_mended_weight_is_no_fault_there_either(watch):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def break_and_mend(step):
        if step == BAD:
            for p in model.parameters():
                p.grad.fill_(math.nan)
                p.grad.nan_to_num_()

    train(model, optimizer, mean, break_and_mend)
    assert watch.verdict() is None


class Grows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(scale)
        return x * scale

    @staticmethod
    def backward(ctx, gradient):
        (scale,) = ctx.saved_tensors
        bad = gradient.sum() == 0
        return gradient * scale, torch.where(bad, math.nan, gradient.sum()).reshape(1)


def test_the_programs_own_derivative_that_only_the_next_loss_shows(watch):
    """It does not reach the gradient that is looked at, which is the first."""

    class Scaled(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return Grows.apply(super().forward(x), self.scale)

    model = Scaled()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    train(model, optimizer, lambda out, step: out.mean() * float(step != BAD))
    found = watch.verdict()
    assert (found["kind"], found["step"], found["op"]) == ("optimizer", BAD, "Grows.backward")


class Meta(torch.Tensor):
    """As MONAI's: only Python knows the class."""


def test_gradients_of_a_loss_of_the_librarys_own_class(watch):
    model = nn.Linear(2, 2, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def loss_of(out, step):
        return (out * float(step != BAD)).as_subclass(Meta).square().sum(1).sqrt().mean()

    train(model, optimizer, loss_of, steps=BAD)
    found = watch.verdict()
    assert (found["kind"], found["step"], found["op"]) == ("gradient", BAD, "sqrt")


class Standardized(nn.Linear):
    def __init__(self, mean):
        super().__init__(2, 2)
        self.register_buffer("mean", torch.tensor(mean))

    def forward(self, x):
        return super().forward(x - self.mean)


def test_a_buffer_that_is_infinite(watch):
    """And a training that goes on with a second optimizer, whose first step is the 21st."""
    model = Standardized(0.0)
    train(model, torch.optim.SGD(model.parameters(), lr=1e-3), mean, steps=BAD)
    model.mean.fill_(math.inf)
    train(model, torch.optim.Adam(model.parameters(), lr=1e-3), lambda out, _: (out - out).mean(), steps=2)
    found = watch.verdict()
    assert (found["kind"], found["name"], found["step"]) == ("weights", "mean", BAD + 1)


def test_a_buffer_of_minus_infinity_is_a_mask(watch):
    class Masked(Standardized):
        def forward(self, x):
            return (nn.Linear.forward(self, x) + torch.stack([self.mean, torch.zeros(())])).softmax(1).log1p()

    model = Masked(-math.inf)
    train(model, torch.optim.SGD(model.parameters(), lr=1e-3), lambda out, _: out.sum() / 0 * 0)
    assert watch.verdict()["kind"] == "loss"


def test_targets_that_are_computed_row_by_row(watch):
    batches.install()
    widths = torch.ones(12, 1)
    widths[7] = 0
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(widths, torch.ones(12, 2)), batch_size=4
    )
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(3):
        for width, x in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), width.log()).backward()
            optimizer.step()
    found = watch.verdict()
    batches.uninstall()
    assert (found["kind"], found["step"]) == ("target", 2)
    assert found["sample"]["dataset_index"] == 7 and found["sample"]["likely"] is True


def test_gradients_that_are_changed_in_a_step_that_is_looked_at(watch):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def exchange(step):
        for p in model.parameters():
            p.grad.copy_((p.grad * (1e6 if step == 3 else 1)).half())

    train(model, optimizer, mean, exchange, steps=4)
    found = watch.verdict()
    assert (found["kind"], found["step"], found["changed"]) == ("gradient", 3, True)


def test_a_row_of_a_table_may_have_been_bad_for_long(watch):
    """It is read again ten steps later."""
    table = nn.Embedding(4, 2)
    optimizer = torch.optim.SGD(table.parameters(), lr=1e-3)
    for step in range(1, 31):
        row = 3 if step in (BAD, BAD + 10) else step % 3
        optimizer.zero_grad()
        table(torch.tensor([row])).sum().backward()
        if step == BAD:
            table.weight.grad[3] = math.nan
        optimizer.step()
    found = watch.verdict()
    assert (found["kind"], found["changed"]) == ("gradient", True)  # the table is the parameter looked at

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.table = nn.Parameter(torch.ones(2)), nn.Embedding(4, 2)

        def forward(self, row):
            return self.table(row) * self.scale.detach() + self.scale

    light.uninstall()
    light.install()
    model = Two()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(1, 31):
        row = 3 if step in (BAD, BAD + 9) else step % 3
        optimizer.zero_grad()
        model(torch.tensor([row])).sum().backward()
        if step == BAD:
            model.table.weight.grad[3] = math.nan
        optimizer.step()
    found = light.verdict()
    assert (found["kind"], found["step"], found["or_before"]) == ("optimizer", BAD + 8, True)


def test_the_first_of_two_that_make_it(watch):
    class Norm(nn.Linear):
        def forward(self, x):
            return super().forward(x) * (x.sum(1, keepdim=True) * 0).pow(-0.5).mul(0)

    model = nn.Sequential(Norm(2, 2), Norm(2, 2))
    train(model, torch.optim.SGD(model.parameters(), lr=1e-3), mean, steps=2)
    assert watch.verdict()["name"] == "0"


def test_complex_numbers_are_followed(watch):
    class Phase(nn.Linear):
        def forward(self, x):
            spectrum = torch.fft.rfft(super().forward(x) * 0)
            return torch.fft.irfft(spectrum / spectrum.abs(), n=2)

    model = Phase(2, 2)
    train(model, torch.optim.SGD(model.parameters(), lr=1e-3), mean, steps=2)
    assert watch.verdict()["op"] == "div"


@pytest.mark.parametrize("is_bad", [False, True])
def test_what_the_optimizer_keeps_tells_whether_its_gradients_were_finite(watch, is_bad):
    """The second parameter turns bad, which is not the one that is looked at."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

    def spoil(step):
        if step == BAD and is_bad:
            model[1].bias.grad[0] = math.nan
        elif step == BAD:
            model[1].bias.data[0] = math.nan

    train(model, optimizer, mean, spoil)
    found = watch.verdict()
    if is_bad:
        assert (found["kind"], found["step"], found["name"]) == ("optimizer", BAD, "1.bias")
        assert "gradients_finite" not in found
    else:  # so that it was no step of it
        assert (found["kind"], found["step"], found["name"]) == ("weights", BAD + 1, "1.bias")
        assert found["written"] == "loss"


def test_a_teacher_that_a_later_step_began_with(watch):
    """It takes no part in the steps that were looked at, and nothing but the loop's own object holds it."""

    class Average:
        def __init__(self, net):
            self.net = net

    student, average = nn.Linear(2, 2), None
    optimizer = torch.optim.SGD(student.parameters(), lr=1e-4)
    for step in range(1, 14):
        out = student(torch.ones(3, 2))
        loss = (out**2).mean()
        if average is not None:
            with torch.no_grad():
                wanted = average.net(torch.ones(3, 2)).softmax(1)
            loss = loss + nn.functional.mse_loss(out.softmax(1), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 10:
            average = Average(nn.Linear(2, 2))
            with torch.no_grad():
                average.net.weight[0, 1] = math.nan
    seen = watch.verdict()
    assert (seen["kind"], seen["name"], seen.get("beside"), seen["step"]) == ("weights", "weight", True, 11)


def test_weights_that_are_added_to_the_optimizer_are_looked_at(watch):
    """In steps that would not be: the first group's gradients stay finite."""
    model, added = nn.Linear(2, 2), nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for turn in range(1, BAD + 2):
        if turn == BAD:
            optimizer.add_param_group({"params": [added]})
        optimizer.zero_grad()
        (model(torch.ones(3, 2)).mean() + added.sqrt().sum()).backward()
        optimizer.step()
    found = watch.verdict()
    assert (found["kind"], found["step"], found["op"]) == ("gradient", BAD, "sqrt")


def test_an_infinite_output_of_which_the_loss_makes_nan(watch):
    """What the loss makes of it is the first NaN; the module's output is none."""
    model = nn.Linear(2, 3)
    nn.init.constant_(model.weight, 10.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    classes = torch.tensor([0, 1, 2])
    for step in range(1, BAD + 2):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(GOOD * (1e38 if step == BAD else 1.0)), classes)
        loss.backward()
        optimizer.step()
    seen = watch.verdict()
    assert (seen["what"], seen["step"], seen["op"]) == ("nan", BAD, "logsoftmax")
    assert (seen["inf_before"]["op"], seen["inf_before"]["type"]) == ("addmm", "Linear")
