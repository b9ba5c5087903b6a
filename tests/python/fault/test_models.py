"""What the variables at a fault say: the batch behind flat ids, models that resize, weights that are NaN."""

import torch
from conftest import make_violation
from torch import nn
from trapline._fault.data import bags
from trapline._fault.model import models


def bag_violation(ids, rows):
    args = {"weight": torch.zeros(rows, 2), "indices": ids, "offsets": torch.arange(0, ids.numel(), 3)}
    return make_violation("_embedding_bag.indices", ids, 0, rows, args)


def test_the_batch_that_was_flattened():
    batch = torch.tensor([[1, 2, 3], [4, 9, 0]])
    violation = bag_violation(batch.reshape(-1), 5)
    assert bags.as_passed(violation) is batch
    assert violation["scan"]["first"] == 4  # row 1, column 1 of the batch


def test_flat_ids_stay_flat():
    ids = torch.tensor([1, 2, 3, 4, 9, 0])
    other = torch.tensor([[1, 2, 3], [4, 9, 1]])  # not the same values
    assert bags.as_passed(bag_violation(ids, 5)) is ids
    assert other.shape == (2, 3)


def test_offsets_are_no_batch():
    offsets = torch.tensor([0, 9])
    batch = offsets.view(1, 2)
    args = {"weight": torch.zeros(5, 2), "indices": offsets, "offsets": offsets}
    violation = make_violation("_embedding_bag.offsets", offsets, 0, 5, args)
    assert bags.as_passed(violation) is offsets
    assert batch.shape == (1, 2)


def test_weights_that_are_nan_already():
    policy = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    assert models.bad_weights() == {"name": "", "bad": 0, "total": 4}
    with torch.no_grad():
        policy[0].bias[1] = -(2.0**30)
    grown = {"name": "policy[0].bias", "value": 2.0**30}
    assert models.bad_weights() == {"name": "", "bad": 0, "total": 4, "grown": grown}
    policy[0].bias.requires_grad_(False)
    assert models.bad_weights() == {"name": "", "bad": 0, "total": 4}, "nothing trains it"
    with torch.no_grad():
        policy[1].weight[0, 0] = float("nan")
        policy[1].bias[0] = float("inf")
    assert models.bad_weights() == {"name": "policy[1].weight", "bad": 2, "total": 4}


def test_a_running_statistic_that_is_nan():
    policy = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    policy.register_buffer("mask", torch.full((2,), float("-inf")))
    assert "buffer" not in models.bad_weights()
    policy[1].running_mean[1] = float("nan")
    assert models.bad_weights() == {"name": "", "bad": 0, "total": 4, "buffer": "policy[1].running_mean"}


def test_a_model_that_resizes_its_table():
    class Model(nn.Module):
        def resize_token_embeddings(self, size):
            raise AssertionError("is not to be called")

        def get_input_embeddings(self):
            return self.shared

        def __init__(self):
            super().__init__()
            self.shared, self.other = nn.Embedding(5, 2), nn.Embedding(6, 2)

    bert, foreign = Model(), nn.Embedding(5, 2)
    assert models.resizable(bert.shared.weight) == "bert"
    assert models.resizable(foreign.weight) is None, "the model that resizes is not the owner"
    assert models.is_input_table(bert.shared.weight)
    assert not models.is_input_table(bert.other.weight)


class Settings:
    def __init__(self, name=""):
        self.sound_vocab_size, self.shape_vocab_size, self.type_vocab_size = 6, 9, 2
        self.vocab_size, self._name_or_path = 40, name


class Reader(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.sound = nn.Embedding(config.sound_vocab_size, 2)


def test_the_setting_of_a_model_that_no_checkpoint_gave():
    reader = Reader(Settings())
    found = models.table_setting(reader.sound.weight, "sound", 7)
    other = {"name": "shape_vocab_size", "value": 9}
    assert found == {"name": "sound_vocab_size", "value": 6, "fresh": True, "other": other}
    assert "other" not in models.table_setting(reader.sound.weight, "sound", 9), "nor has that one room"
    reader = Reader(Settings("bert-base"))
    assert models.table_setting(reader.sound.weight, "sound", 7) == {"name": "sound_vocab_size", "value": 6}
