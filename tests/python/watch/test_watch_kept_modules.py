"""All modules and losses of PyTorch's own, with the arguments of its own tests: running one again leaves the
program's graph, buffers, weights and random numbers as they were, and so does the watch as a whole where a
NaN begins."""

from __future__ import annotations

import weakref

import pytest

torch = pytest.importorskip("torch")
common = pytest.importorskip("torch.testing._internal.common_modules")
from torch.utils import _pytree as trees  # noqa: E402
from trapline._watch.again import Call  # noqa: E402
from trapline._watch.forward import followed  # noqa: E402

SEED = 5
MOST = 6  # cases of a module: some have hundreds, which differ in little


def cases(info, most=MOST):
    torch.manual_seed(SEED)
    given = {"device": "cpu", "dtype": torch.float32, "requires_grad": True, "training": True}
    made = [case for case in info.module_inputs_func(info, **given) if case.forward_input is not None]
    return made[:: -(-len(made) // most)]


def copied(value):
    """As a program makes it: a leaf of its own."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)


def made_of(info, case):
    torch.manual_seed(SEED)
    module = info.module_cls(*case.constructor_input.args, **case.constructor_input.kwargs)
    args, kwargs = trees.tree_map(copied, (case.forward_input.args, case.forward_input.kwargs))
    return module.to(torch.float32).train(), args, kwargs


def floats(value):
    return [one for one in trees.tree_leaves(value) if isinstance(one, torch.Tensor) and one.requires_grad]


def run(info, case, again):
    module, args, kwargs = made_of(info, case)
    held = [*module.parameters(), *module.buffers()]
    lazy = any(isinstance(one, torch.nn.parameter.UninitializedTensorMixin) for one in held)
    state = torch.get_rng_state()
    out = module(*args, **kwargs)
    if lazy:
        held = [*module.parameters(), *module.buffers()]
    leaves = [one for one in trees.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
    kept = [*held, *leaves]
    versions = [one._version for one in kept]
    if again:
        followed(Call((weakref.ref(module), args, kwargs, 0, None, state, None)))
    assert [one._version for one in kept] == versions
    assert all(mine is one for mine, one in zip([*module.parameters(), *module.buffers()], held))
    if floats(out):
        sum(one.float().abs().sum() for one in floats(out)).backward()
    gradients = [one.grad for one in kept if one.requires_grad and one.grad is not None]
    return [*trees.tree_leaves(out), *kept, *gradients, torch.rand(2)]


def same(one, other):
    if not isinstance(one, torch.Tensor):
        return one == other
    return one.shape == other.shape and torch.equal(one.nan_to_num(7.5), other.nan_to_num(7.5))


@pytest.mark.parametrize("info", common.module_db, ids=lambda info: info.formatted_name)
def test_runs_again(info):
    tried = 0
    for case in cases(info):
        watched, plain = run(info, case, again=True), run(info, case, again=False)
        assert len(watched) == len(plain) and all(map(same, watched, plain))
        tried += 1
    assert tried


def trained(info, case):
    """Four steps; in the third an input, or where there is none a weight, is NaN at one place."""
    module, args, kwargs = made_of(info, case)
    leaves = floats((args, kwargs))
    module(*args, **kwargs)  # a lazy one has its weights now
    learnt = [*module.parameters(), *leaves]
    if not learnt:
        return []
    optimizer = torch.optim.Adam(learnt, lr=1e-3)
    losses = []
    for turn in range(1, 5):
        optimizer.zero_grad()
        if turn == 3:
            with torch.no_grad():
                first = (leaves or learnt)[0]
                first[(0,) * first.dim()] = float("nan")
        try:
            out = floats(module(*args, **kwargs))
        except RuntimeError:  # binary_cross_entropy's own, of a NaN
            break
        if not out:
            return []
        loss = sum(one.float().square().mean() for one in out)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *learnt, *module.buffers(), torch.rand(2)]


@pytest.mark.parametrize("info", common.module_db, ids=lambda info: info.formatted_name)
def test_trains_on_as_without_the_watch(info):
    from trapline._watch import light

    for case in cases(info, most=2):
        plain = trained(info, case)
        light.install()
        try:
            watched = trained(info, case)
            seen = light.verdict()
        finally:
            light.uninstall()
        assert len(watched) == len(plain) and all(map(same, watched, plain))
        begins_finite = all(bool(loss.isfinite()) for loss in plain[:2])  # LPPool divides by 0 of itself
        assert seen is None or seen["step"] == (3 if begins_finite else 1)
