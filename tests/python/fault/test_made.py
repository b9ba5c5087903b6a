"""What made a layer so large: read from the source of its class, never guessed from a number."""

import pytest

pytest.importorskip("torch")
from torch import nn
from trapline._fault.program import libraries, made


class Config:
    def __init__(self):
        self.vocab_size = 32
        self.id2label = {0: "a", 1: "b"}
        self.width = 4


class Masked(nn.Module):
    def __init__(self, config, extra=1):
        super().__init__()
        self.config = config
        self.lm_head = nn.Linear(config.width, config.vocab_size)
        self.next_sentence = nn.Linear(config.width, 2)
        self.classifier = nn.Linear(config.width, config.num_labels) if extra else nn.Identity()
        self.own = nn.Linear(config.width, extra)
        self.computed = nn.Linear(config.width, len(config.id2label))


Config.num_labels = property(lambda self: len(self.id2label))


@pytest.mark.parametrize(
    ("attribute", "names"),
    [
        ("lm_head", ["vocab_size"]),
        ("next_sentence", []),
        ("classifier", ["num_labels"]),
        ("own", ["extra"]),
        ("computed", None),
        ("missing", None),
    ],
)
def test_the_names_that_the_size_is_made_of(attribute, names):
    assert made.names_of(Masked(Config()), attribute, own=True) == names


def test_an_argument_of_an_inner_class_is_not_what_the_user_gives():
    assert made.names_of(Masked(Config()), "own", own=False) is None
    assert made.names_of(Masked(Config()), "lm_head", own=False) == ["vocab_size"]


def test_settings_are_read_without_running_a_property():
    class Loud(Config):
        @property
        def boom(self):
            raise AssertionError("nothing of the program's runs")

    settings = libraries.settings_of([Masked(Loud())])
    assert settings["num_labels"] == [2] and settings["vocab_size"] == [32]
    assert "training" not in settings and "boom" not in settings


def test_of_two_holders_both_values_are_kept():
    inner, outer = nn.Module(), nn.Module()
    inner.num_classes, outer.num_classes = 3, 5
    assert libraries.settings_of([inner, outer])["num_classes"] == [3, 5]
