"""A limit of the program's own that goes by the setting of the table."""

import linecache
from types import SimpleNamespace

from trapline._fault.program import limits

config = SimpleNamespace(n_positions=64)


def cut(text, max_length=None):
    return text


def GPTConfig(**settings):
    return SimpleNamespace(**settings)


def test_an_argument_that_adds_to_it():
    cut("text", max_length=config.n_positions + 8)
    found = limits.limit_facts("n_positions")
    assert (
        found["text"] == "max_length=config.n_positions + 8"
        and found["more"] is True
        and found["follows"] is True
    )
    assert linecache.getline(__file__, found["line"]).strip().startswith("cut(")


def test_a_slice():
    "text"[: config.n_positions]
    found = limits.limit_facts("n_positions")
    assert found["text"] == "config.n_positions" and "more" not in found


def test_a_constant_that_the_setting_is_given():
    block = 64
    GPTConfig(n_positions=block, n_ctx=block)
    seq_len = block + 1
    found = limits.limit_facts("n_positions")
    assert (found["text"], found["more"]) == ("seq_len=block + 1", True) and seq_len == 65
    assert "follows" not in found


def test_what_makes_the_table_is_no_limit():
    GPTConfig(n_positions=64, max_seq=config.n_positions)
    Embedding = dict
    Embedding(max_len=config.n_positions)
    assert limits.limit_facts("n_positions") is None


def test_another_setting():
    cut("text", max_length=config.n_positions)
    assert limits.limit_facts("max_position_embeddings") is None
