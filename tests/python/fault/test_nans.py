"""Where a NaN comes from: the input, the dtype, a banned row; and what the program was doing."""

import sys

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from trapline._fault.data import recorded  # noqa: E402
from trapline._fault.model import nans  # noqa: E402
from trapline._fault.program import calls  # noqa: E402

NAN = float("nan")


def probabilities(probs):
    """What multinomial(probs) shows to the guard."""
    bad = ~probs.isfinite()
    violation = make_violation("multinomial.self", probs, 0, 0, {"self": probs}, bad=bad)
    violation["scan"]["reason"] = 3
    return violation


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)

    def forward(self, x):
        return torch.softmax(self.body(x), -1)


class Actor(Policy):
    def forward(self, observation, collect):
        hidden = self.body(observation)
        return collect(probabilities(torch.softmax(hidden, -1)))


def observations(bad=NAN):
    obs = torch.ones(3, 4)
    obs[1, 1] = bad
    return obs


def test_what_went_into_a_model_that_has_returned(facts_of):
    policy, obs = Policy(), observations()
    with torch.no_grad():
        probs = policy(obs)
    facts = facts_of(probabilities(probs))
    assert facts["nan"]["input"] == {"name": "obs", "index": [1, 1], "value": "nan", "module": "policy"}
    assert facts["weights"] == {"name": "", "bad": 0, "total": 2}


def test_data_are_partly_finite_and_computed_by_no_model(facts_of):
    policy, obs = Policy(), observations()
    probs = policy(obs).detach()
    assert facts_of(probabilities(probs))["nan"]["data"] is True
    hidden = policy.body(observations())
    probs = torch.softmax(policy.body(hidden @ torch.ones(hidden.shape[1], 4)), -1).detach()
    del obs
    assert "data" not in facts_of(probabilities(probs))["nan"]


def test_what_a_running_model_was_given(facts_of):
    actor, made = Actor(), observations(float("inf"))
    made[0, 2] = float("-inf")  # as in a mask: not what is looked for
    found = actor(made, facts_of)["nan"]["input"]
    assert found == {"name": "observation", "index": [1, 1], "value": "inf", "module": "actor"}


def test_a_batch_and_an_array_as_input(facts_of):
    numpy = pytest.importorskip("numpy")
    policy = Policy()
    batch = {"x": observations()}
    with torch.no_grad():
        probs = policy(batch["x"])
    assert facts_of(probabilities(probs))["nan"]["input"]["name"] == 'batch["x"]'
    del batch
    array = numpy.ones((2, 4), dtype=numpy.float32)
    array[0, 3] = NAN
    with torch.no_grad():
        probs = policy(torch.as_tensor(array))
    found = facts_of(probabilities(probs))["nan"]["input"]
    assert found == {"name": "array", "index": [0, 3], "value": "nan", "module": "policy"}


def test_an_output_is_no_input(facts_of):
    policy, obs = Policy(), torch.ones(3, 4)
    head = nn.Linear(2, 2)
    with torch.no_grad():
        h = policy(obs)
        h[0, 0] = NAN
        h = head(h)
        probs = torch.softmax(h, -1)
    assert "input" not in facts_of(probabilities(probs))["nan"]


def test_the_model_is_float16(facts_of):
    lm = Policy().half()
    probs = torch.full((1, 2), NAN)
    facts = facts_of(probabilities(probs))
    assert facts["nan"]["precision"] == {"dtype": "float16", "module": "lm", "by": "parameters"}
    assert facts["nan"]["trains"] is False and lm.training


def test_a_row_that_was_banned(facts_of):
    scores = torch.zeros(3, 5)
    scores[2] = float("-inf")
    facts = facts_of(probabilities(torch.softmax(scores, -1)))
    assert facts["nan"]["banned"] == {"name": "scores", "row": 2}


def test_what_the_program_does(facts_of):
    probs = torch.full((2, 3), NAN)

    def generate(temperature):
        return facts_of(probabilities(probs))["nan"]["situation"]

    assert generate(1.0) == "generation"
    assert facts_of(probabilities(probs.clone().requires_grad_()))["nan"]["situation"] == "training"
    model = Policy().eval()
    assert facts_of(probabilities(probs))["nan"]["situation"] == "inference"
    assert facts_of(probabilities(probs))["nan"]["trains"] is False
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert facts_of(probabilities(probs))["nan"]["trains"] is True and optimizer is not None


def test_a_draw_in_a_policy(facts_of):
    from torch.distributions import Categorical

    seen = []

    class Drawn(Categorical):
        def sample(self):
            return super().sample()

    def act(obs):
        policy = Policy()
        with torch.no_grad():
            dist = Drawn(probs=policy(obs))
        multinomial, torch.multinomial = (
            torch.multinomial,
            lambda probs, *_: (
                seen.append(facts_of(probabilities(torch.full((1, 2), NAN))))
                or torch.zeros(1, 1, dtype=torch.long)
            ),
        )
        try:
            dist.sample()
        finally:
            torch.multinomial = multinomial

    act(torch.ones(1, 4))
    assert seen[0]["nan"]["situation"] == "policy"


def test_the_source_of_a_cast(facts_of):
    features = torch.tensor([[0.0, 1.0], [NAN, 2.0]])
    violation = make_violation(
        "embedding.indices", features.long(), 0, 9, {"weight": torch.zeros(9, 2), "indices": features.long()}
    )
    assert facts_of(violation)["nan"] == {"input": {"name": "features", "index": [1, 0], "value": "nan"}}


@pytest.mark.parametrize(
    ("started", "shown"),
    [
        (["python3", "train.py"], "python train.py"),
        (["/usr/bin/python3", "-u", "-W", "ignore", "train.py", "--token", "secret"], "python train.py ..."),
        (["python", "-m", "proj.train", "x"], "python -m proj.train ..."),
        (["python", "-c", "import torch"], "python -c ..."),
        (["python"], ""),
    ],
)
def test_the_next_command(monkeypatch, started, shown):
    monkeypatch.setattr(nans.sys, "orig_argv", started)
    assert nans.command() == shown
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    assert nans.command() == shown.replace("python", "torchrun ...", 1)


def test_a_temperature_of_zero(facts_of):
    temperature = 0.0
    scores = torch.tensor([[1.0, 2.0, 3.0]])
    facts = facts_of(probabilities(torch.softmax(scores / temperature, -1)))
    assert facts["nan"]["zero"] == "temperature"


def test_one_column_of_a_table_was_cast():
    x = torch.ones(4, 3)
    x[2, 1] = NAN
    cast = torch.tensor([1, 1, -(1 << 63), 1])
    violation = make_violation("embedding.indices", cast, 0, 6, {"indices": cast})
    found = nans.cast_facts(violation, None, True)
    assert found == {"input": {"name": "x", "index": [2, 1], "value": "nan"}}


def test_what_a_search_made_of_nan():
    humidity = torch.tensor([0.4, NAN, 0.7, 0.2])
    masked = torch.tensor([0.0, -float("inf"), 0.0, 0.0])
    band = torch.bucketize(humidity, torch.tensor([0.0, 0.5, 1.0]))
    violation = make_violation("embedding.indices", band, 0, 3, {"indices": band})
    assert len(masked) == 4
    found = nans.cast_facts(violation, None, False)
    assert found == {"input": {"name": "humidity", "index": [1], "value": "nan"}}
    other = make_violation("embedding.indices", band, 0, 2, {"indices": band})  # 2 of them, and one NaN
    assert nans.cast_facts(other, None, False) is None


def test_the_weights_of_a_sampler():
    from torch.utils.data import WeightedRandomSampler
    from trapline._fault.data import samplers

    sample_weight = torch.tensor([NAN, 1.0, 1.0])
    sampler = WeightedRandomSampler(sample_weight, 3)
    found = []
    draw = torch.multinomial
    try:
        torch.multinomial = lambda *given, **_: found.append(samplers.sampler_facts(given[0], {"first": 0}))
        with pytest.raises(AttributeError):
            list(sampler)
    finally:
        torch.multinomial = draw
    (facts,) = found
    assert facts["name"] == "sampler.weights" and facts["variable"]["index"] == [0]


@pytest.mark.parametrize(
    ("losses", "found"),
    [
        ([2.0, 1.5, NAN, NAN], {"name": "losses", "index": 2, "count": 4, "value": "nan"}),
        (
            [torch.tensor(2.0), torch.tensor(float("inf"))],
            {"name": "losses", "index": 1, "count": 2, "value": "inf"},
        ),
        (torch.tensor([1.0, 2.0, NAN]), {"name": "losses", "index": 2, "count": 3, "value": "nan"}),
        ([1.0, 2.0], None),
        ([NAN, NAN], None),
        ([1.0, "high"], None),
    ],
)
def test_the_first_bad_of_the_losses_that_were_kept(losses, found):
    probs = torch.tensor([NAN, 1.0])
    assert nans.nan_facts(probabilities(probs), probs).get("losses") == found


def test_losses_in_a_history():
    history = {"lr": [0.1, NAN], "train_loss": [1.0, NAN]}
    probs = torch.tensor([NAN, 1.0])
    found = nans.nan_facts(probabilities(probs), probs)["losses"]
    assert found["name"] == 'history["train_loss"]' and found["index"] == 1
    assert history["lr"]


def test_an_index_that_was_searched_among_what_broken_weights_made(facts_of):
    model = nn.Linear(4, 3)

    def facts(index):
        scores = torch.zeros(6, 3)
        violation = make_violation(
            "gather.index", index, 0, 3, {"self": scores, "dim": 1, "index": index}, bad=index < 0
        )
        return facts_of(dict(violation, op="gather"))

    assert "weights" not in facts(torch.full((6, 1), -1))
    with torch.no_grad():
        model.weight[1] = NAN
    assert facts(torch.full((6, 1), -1))["weights"]["bad"] == 1
    assert "weights" not in facts(torch.tensor([[0], [1], [-1], [2], [0], [1]]))


@pytest.mark.parametrize(
    ("name", "text"), [("sample_token", True), ("sample_and_log_prob", False), ("sample_actions", False)]
)
def test_what_draws_is_not_always_text(name, text):
    assert bool(nans._GENERATION.match(name)) == text


def test_a_program_without_modules_has_no_layer_to_be_named(facts_of, monkeypatch):
    monkeypatch.setattr(nans, "command", lambda: "python main.py")
    assert "command" not in facts_of(probabilities(torch.full((4,), NAN)))["nan"]
    policy = Policy()
    assert facts_of(probabilities(torch.full((4,), NAN)))["nan"]["command"] == "python main.py"
    del policy


def test_the_one_call_of_a_rare_function_is_where_it_was_made(facts_of):
    def distance(x):
        return torch.acosh(x)

    near = distance(torch.tensor([0.5, 2.0], requires_grad=True))
    made = facts_of(probabilities(near))["nan"]["made"]
    assert (made["op"], made["text"], made["origin"]["file"]) == ("acosh", "torch.acosh(x)", __file__)
    assert nans._only_call("sqrt") == {}, "a library calls it as well"


@pytest.mark.parametrize("bad", [0, 3])
def test_what_made_it_is_looked_for_where_no_weight_is_bad(bad):
    """By who runs the statements again; a model with broken weights would only be slow."""
    asked = []

    def again(value, function):
        asked.append((tuple(value.shape), function))
        return {"op": "pow", "origin": {"file": "near.py", "line": 7, "code": "  near = far.pow(-2)"}}

    recorded.by_replay(again)
    try:
        found = nans.nan_facts(probabilities(torch.tensor([NAN, 1.0])), torch.ones(2), {"bad": bad})
    finally:
        recorded.by_replay(None)
    if bad:
        assert not asked and "made" not in found
    else:
        assert asked == [((2,), "multinomial")]
        assert (found["made"]["op"], found["made"]["text"], found["made"]["line"]) == (
            "pow",
            "near = far.pow(-2)",
            7,
        )


def test_what_numpy_said_of_what_goes_into_the_model(monkeypatch):
    policy, obs = Policy(), observations()
    with torch.no_grad():
        probs = policy(obs)
    places = [{"text": "Mean of empty slice", "file": "env.py", "line": 44}]
    monkeypatch.setattr(nans.warned, "of_not_finite", lambda only_inf: places)
    assert nans.nan_facts(probabilities(probs), probs)["warned"] == places
    del obs
    good = torch.ones(3, 4)
    with torch.no_grad():
        probs = policy(good) * NAN
    assert "warned" not in nans.nan_facts(probabilities(probs), probs)


def test_the_rows_of_which_a_library_made_an_index():
    """A search among edges inside a library: just the rows with a NaN have no place."""
    inputs = torch.arange(40.0).reshape(8, 5) / 40
    inputs[2, 4] = inputs[6, 1] = NAN
    index = torch.zeros(8, 3, 1, dtype=torch.long)
    index[2, 2] = index[6, 0] = -1

    violation = make_violation("gather.index", index, 0, 9, {"index": index})
    found = nans.library_facts(violation, None)
    assert found == {"input": {"name": "inputs", "index": [2, 4], "value": "nan"}}
    index[5, 1] = -1
    violation = make_violation("gather.index", index, 0, 9, {"index": index})
    assert nans.library_facts(violation, None) is None


def test_what_a_model_is_given_of_a_size_alone():
    from trapline._fault.program import calls

    def step(net, real):
        fake = net(torch.randn_like(real))
        return list(calls.model_inputs(sys._getframe())), fake, net(real.new_zeros(real.shape)), net(real + 1)

    real = torch.rand(2, 2)
    given, *_ = step(torch.nn.Linear(2, 2), real)
    names = [name for _, name, _ in given if name != "torch"]
    assert names == ["real", "real"]  # of new_zeros and of the sum


def test_of_a_call_in_a_call_each_module_has_its_own():
    model, criterion = torch.nn.Linear(2, 1), torch.nn.MSELoss()
    xb, yb = torch.ones(3, 2), torch.ones(3, 1)
    criterion(model(xb), yb)
    found = {(called, name) for called, name, _ in calls.model_inputs(sys._getframe())}
    assert found == {("criterion", "yb"), ("model", "xb")}
