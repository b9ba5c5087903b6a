"""Samples that are drawn by weights which the program computed: a weight's place is its sample's."""

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")
import trapline._fault as fault  # noqa: E402
from torch.utils.data import Subset, TensorDataset  # noqa: E402


@pytest.fixture(autouse=True)
def installed():
    fault.install()
    yield
    fault.uninstall()


def drawn_by(facts_of, weights):
    return facts_of(make_violation("multinomial.self", weights, 0, 0, {"self": weights}, bad=~(weights >= 0)))


def weights_of(*bad, size=12, value=float("nan")):
    weights = torch.rand(size) + 0.1
    weights[list(bad)] = value
    return weights


def test_the_sample_of_the_first_bad_weight(facts_of):
    everything = TensorDataset(torch.arange(40))
    pool = Subset(everything, list(range(10, 22)))
    sample = drawn_by(facts_of, weights_of(7))["sample"]
    assert (sample["dataset_index"], sample["base_index"], sample["by"], sample["likely"]) == (
        7,
        17,
        "weight",
        True,
    )
    assert (sample["dataset"]["name"], len(pool)) == ("pool", 12)


def test_a_weight_below_0_was_computed_so(facts_of):
    everything = TensorDataset(torch.arange(40))
    pool = Subset(everything, list(range(10, 22)))
    assert "sample" not in drawn_by(facts_of, weights_of(7, value=-1.0)) and len(pool) == 12


def test_of_two_data_sets_as_long_it_is_neither(facts_of):
    first, second = TensorDataset(torch.arange(12)), TensorDataset(torch.arange(12))
    assert "sample" not in drawn_by(facts_of, weights_of(7))
    assert len(first) == len(second)


def test_most_weights_are_bad(facts_of):
    pool = TensorDataset(torch.arange(12))
    assert "sample" not in drawn_by(facts_of, weights_of(*range(7)))
    assert len(pool) == 12


def test_probabilities_of_something_else(facts_of):
    pool = TensorDataset(torch.arange(13))
    assert "sample" not in drawn_by(facts_of, weights_of(7))
    assert len(pool) == 13
