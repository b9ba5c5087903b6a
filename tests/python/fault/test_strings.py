"""Texts that a library tokenizes itself: the program's own list and the place in it."""

import importlib.util
import sys

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")
from trapline._fault.data import strings, which  # noqa: E402

LIBRARY = """
def encode(texts, work, order=None, size=4):
    order = order or list(range(len(texts)))
    for begin in range(0, len(order), size):
        batch = [texts[at] for at in order[begin : begin + size]]
        lengths = [len(text.split()) for text in batch]
        ids = torch.zeros(len(batch), max(lengths), dtype=torch.long)
        mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
        for row, text in enumerate(batch):
            ids[row, : lengths[row]] = torch.tensor([int(word) for word in text.split()])
        features = {"input_ids": ids, "attention_mask": mask.long()}
        result = work(features)
        if result is not None:
            return result
"""


def library(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "encoder.py").write_text("import torch\n" + LIBRARY)
    spec = importlib.util.spec_from_file_location("encoder", folder / "encoder.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "encoder", module)
    spec.loader.exec_module(module)
    return module


def texts():
    made = [f"{n} {n + 1} {n + 2}" for n in range(1, 11)]
    made[6] = "3 99 4"
    made[2] = "1 2 3 4 5 6 7 8 9"
    return made


def test_the_row_of_a_bad_id(tmp_path, monkeypatch):
    corpus = texts()

    def work(features):
        ids = features["input_ids"]
        if (ids >= 50).any():
            violation = make_violation("embedding.indices", ids, 0, 50, {"indices": ids}, frames=[])
            return which.sample_of(violation, None, False, [])

    found = library(tmp_path, monkeypatch).encode(corpus, work, order=[9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
    assert found == {
        "dataset_index": 6,
        "row": 3,
        "dataset": {"name": "corpus", "type": "list", "length": 10},
    }


def test_the_longest_text(tmp_path, monkeypatch):
    corpus = {"text": texts(), "label": [0] * 10}

    def work(features):
        return strings.longest(8) if features["input_ids"].shape[1] > 8 else None

    found = library(tmp_path, monkeypatch).encode(corpus["text"], work)
    assert found == {
        "dataset_index": 2,
        "row": 2,
        "by": "length",
        "dataset": {"name": "corpus['text']", "type": "list", "length": 10},
    }


def test_two_that_are_as_long_name_neither(tmp_path, monkeypatch):
    corpus = texts()
    corpus[3] = corpus[2] + " "

    def work(features):
        return strings.longest(8) or "nothing" if features["input_ids"].shape[1] > 8 else None

    assert library(tmp_path, monkeypatch).encode(corpus, work) == "nothing"


def test_equal_texts_are_not_the_same_one(tmp_path, monkeypatch):
    """The program's list holds the object twice: which of the two it was is not known."""
    corpus = texts()
    corpus[7] = corpus[6]

    def work(features):
        ids = features["input_ids"]
        if (ids >= 50).any():
            violation = make_violation("embedding.indices", ids, 0, 50, {"indices": ids}, frames=[])
            return strings.sample_facts(violation["tensor"], violation["scan"]) or "nothing"

    assert library(tmp_path, monkeypatch).encode(corpus, work) == "nothing"


def test_the_text_of_a_bag(tmp_path, monkeypatch):
    corpus = texts()

    def work(features):
        lengths = features["attention_mask"].sum(1)
        ids = features["input_ids"][features["attention_mask"].bool()]
        if (ids >= 50).any():
            offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)[:-1]])
            violation = make_violation("_embedding_bag.indices", ids, 0, 50, {"offsets": offsets}, frames=[])
            return which.sample_of(violation, None, False, [])

    found = library(tmp_path, monkeypatch).encode(corpus, work)
    assert (found["dataset_index"], found["dataset"]["name"], found["row"]) == (6, "corpus", 2)


def test_the_longest_of_records_that_the_program_tokenizes():
    tickets = [{"id": at, "words": 3 + at} for at in range(20)]

    def reply(batch):
        lengths = torch.tensor([ticket["words"] for ticket in batch])
        attention_mask = (torch.arange(30)[None] < lengths[:, None]).long()
        assert attention_mask.shape == (4, 30)
        return strings.longest(10)

    found = reply(tickets[5:9])
    assert (found["dataset_index"], found["dataset"]["name"]) == (8, "tickets")
    assert found["likely"] is True and found["by"] == "length"


@pytest.mark.parametrize("bad_rows, row, by", [([2], 2, "row"), ([1, 2], 1, None), ([0, 1, 3], None, None)])
def test_a_row_is_bad_alone_only_where_no_other_is(bad_rows, row, by):
    tickets = [{"id": at} for at in range(20)]

    def reply(batch):
        ids = torch.ones(4, 6, dtype=torch.long)
        ids[bad_rows, 3] = 60
        assert len(batch) == len(ids)
        violation = make_violation("embedding.indices", ids, 0, 50, {"indices": ids}, frames=[])
        return which.sample_of(violation, None, False, [])

    found = reply(tickets[5:9])
    if row is None:  # most are bad: none is to blame
        assert found is None or "dataset_index" not in found
    else:
        assert (found["dataset_index"], found["row"], found.get("by")) == (5 + row, row, by)


def test_single_words_are_no_texts_of_the_programs():
    words = [f"w{n}" for n in range(20)]

    def generate(batch):
        ids = torch.tensor([[1, 2], [3, 60], [4, 5]])
        assert len(batch) == len(ids)
        violation = make_violation("embedding.indices", ids, 0, 50, {"indices": ids}, frames=[])
        return strings.sample_facts(ids, violation["scan"])

    assert generate(words[5:8]) is None


def test_a_record_of_a_batch_that_a_generator_of_the_programs_has_made():
    tickets = [{"words": [n % 7, 3]} for n in range(20)]
    tickets[13]["words"][0] = 9

    def cut():
        for start in range(0, 20, 4):
            rows = tickets[start : start + 4]
            yield torch.tensor([row["words"] for row in rows])

    def step(ids):
        violation = make_violation("embedding.indices", ids, 0, 7, {"indices": ids}, frames=[])
        return strings.sample_facts(ids, violation["scan"])

    for ids in cut():
        if int(ids.max()) > 6:
            found = step(ids)
            break
    assert (found["dataset"]["name"], found["dataset_index"], found["row"]) == ("tickets", 13, 1)


def test_which_record_the_row_of_a_batch_is_that_a_loop_has_drawn():
    """Of several tensors the row alone is known; the generator that made them has the records."""
    pairs = [([n % 7, 3], n / 20) for n in range(20)]
    pairs[6][0][1] = 8

    def cut():
        for start in range(0, 20, 5):
            rows = pairs[start : start + 5]
            yield torch.tensor([words for words, _ in rows]), torch.tensor([grade for _, grade in rows])

    def step(ids):
        violation = make_violation("embedding.indices", ids, 0, 7, {"indices": ids}, frames=[])
        return which.sample_of(violation, None, False, [])

    for ids, _grades in cut():
        if int(ids.max()) > 6:
            found = step(ids)
            break
    assert (found["dataset"]["name"], found["dataset_index"], found["row"]) == ("pairs", 6, 1)
    assert (found["by"], found["likely"]) == ("row", True)
