"""Numbers that the samples of a batch do not have: of the collate function, drawn, masked, rounded."""

from __future__ import annotations

import json
import random

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, Dataset  # noqa: E402
from trapline._fault.data import hand, masked, variables, which  # noqa: E402
from trapline._fault.model import tables  # noqa: E402

pytestmark = pytest.mark.usefixtures("installed")


class Words(Dataset):
    """Text n has the words n, n + 1 ... n + 5; nothing above 13."""

    def __len__(self):
        return 8

    def __getitem__(self, at):
        return torch.arange(at, at + 6)


WORDS = Words()  # a batch outlives its loader, not the data set


def found_in(data, collate, batch_size=4):
    """The sample facts of the first batch, whose words are looked up in a table of 20 rows."""

    def step(words):
        violation = make_violation("embedding.indices", words, 0, 20, {"indices": words}, frames=[])
        return which.sample_of(violation, None, False, [])

    for words in DataLoader(data, batch_size=batch_size, collate_fn=collate):
        return step(words)


def masks(rows):
    """A language model's collate function: another word in a place."""
    words = torch.stack(rows)
    words[1, 3] = 25
    return words


def test_a_word_that_the_collate_function_put_there():
    found = found_in(WORDS, masks)
    assert (found["dataset_index"], found["row"], found["by"]) == (1, 1, "collate")


def test_a_word_of_the_samples_own():
    class Odd(Words):
        def __getitem__(self, at):
            words = super().__getitem__(at)
            words[3] = 25 if at == 1 else words[3]
            return words

    odd = Odd()
    for collate in (None, torch.stack):
        found = found_in(odd, collate)
        assert (found["dataset_index"], "by" in found) == (1, False)


class Desks(Dataset):
    """Desk n is in queue n, and has no other number."""

    def __len__(self):
        return 8

    def __getitem__(self, at):
        return torch.arange(100 + 3 * at, 103 + 3 * at), at


def label_of(collate):
    def step(labels):
        violation = make_violation("nll_loss_forward.target", labels, 0, 8, {"target": labels}, frames=[])
        return which.sample_of(violation, None, False, [])

    for _, labels in DataLoader(Desks(), batch_size=8, collate_fn=collate):
        return step(labels)


def moved_twice(rows):
    """The later desks get an offset that the data set has added already."""
    queues = torch.tensor([queue for _, queue in rows])
    return torch.stack([text for text, _ in rows]), queues + 4 * (queues > 4)


def numbered_anew(rows):
    """No row has the number of its sample: nobody knows whose row is whose."""
    return torch.stack([text for text, _ in rows]), torch.tensor([queue for _, queue in rows]) + 20


def test_a_label_that_the_collate_function_has_changed():
    found = label_of(moved_twice)
    assert (found["dataset_index"], found["row"], found["by"]) == (5, 5, "collate")
    assert label_of(numbered_anew).get("by") != "collate"


def test_texts_that_the_collate_function_turns_into_numbers_have_none_to_compare():
    texts = ["abc", "abd", "azc", "acb"]

    def numbers(rows):
        return torch.tensor([[ord(letter) - ord("a") for letter in row] for row in rows])

    found = found_in(texts, numbers)
    assert "by" not in (found or {}) or found["by"] != "collate"


@pytest.mark.parametrize("chance", ["random", "torch", "numpy"])
def test_a_label_that_the_data_set_draws_anew(chance):
    """Turns of a picture, of which one too many is drawn."""
    if chance == "numpy":
        numpy = pytest.importorskip("numpy")

    class Turned(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, at):
            if chance == "random":
                turns = random.randint(0, 12)
            elif chance == "torch":
                turns = int(torch.randint(0, 13, ()))
            else:
                turns = int(numpy.random.randint(0, 13))
            return torch.full((3,), float(at)), 12 + turns

    def step(labels):
        violation = make_violation("nll_loss_forward.target", labels, 0, 20, {"target": labels}, frames=[])
        return which.sample_of(violation, None, False, [])

    turned, before = Turned(), random.getstate()
    for _ in range(8):
        for _, labels in DataLoader(turned, batch_size=2):
            bad = (labels >= 20).tolist()
            if sum(bad) == 1:
                state = random.getstate(), torch.get_rng_state()
                found = step(labels)
                assert (found["row"], found["by"]) == (bad.index(True), "drawn")
                # What the program draws next is what it would have drawn.
                assert (random.getstate(), torch.equal(torch.get_rng_state(), state[1])) == (state[0], True)
                return
    random.setstate(before)
    raise AssertionError("none was drawn")


def test_numbers_that_a_mask_leaves_out():
    batch = {
        "ids": torch.tensor([[1, 2, 9], [3, 9, 9]]),
        "mask": torch.tensor([[1, 1, 0], [1, 0, 0]]),
        "odd": torch.tensor([[0, 1, 0], [1, 0, 0]]),  # no padding: it rises and falls
    }
    scan = {"lo": 0, "hi": 5, "also": None}
    ids = batch["ids"]
    assert masked.masked_by(ids, scan, None) == 'batch["mask"]'
    padding = ids.clone()  # a mask that says where there is nothing, as PyTorch has them
    padding[0] = torch.tensor([1, 9, 2])
    assert masked.masked_by(padding, scan, None) is None
    ids[0, 0] = 9  # which counts
    assert masked.masked_by(ids, scan, None) is None


def test_the_variable_that_rounds(guarded):
    """259 is 260 in bfloat16."""
    guarded.script(
        "program.py",
        """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        table = torch.nn.Embedding(260, 4)
        stations = torch.tensor([12.0, 259.0, 7.0, 31.0, 88.0, 102.0, 5.0, 64.0])
        rows = torch.stack([stations, stations / 2], 1).bfloat16()
        for (features,) in DataLoader(TensorDataset(rows), batch_size=8):
            table(features[:, 0].long())
        """,
    )
    ended = guarded.run("program.py")
    assert ended.returncode == 1
    report = json.loads(next(guarded.reports.glob("finding-*.json")).read_text(encoding="utf-8"))
    finding = report["findings"][0]
    assert "` is bfloat16, which rounds whole numbers above 256" in finding["summary"]
    assert finding["sample"]["by"] == "rounded" and finding["sample"]["dataset_index"] == 1


@pytest.mark.parametrize(
    ("dtype", "value", "exact"),
    [("bfloat16", 256, 256), ("bfloat16", 255, None), ("float16", 260, None), ("float16", 2048, 2048)],
)
def test_only_numbers_that_such_a_float_cannot_hold_are_rounded(monkeypatch, dtype, value, exact):
    stations = torch.tensor([12.0, value, 7.0, 31.0, 88.0, 102.0, 5.0, 64.0]).to(getattr(torch, dtype))
    monkeypatch.setattr(variables.holders, "user_frames", lambda: [None])
    monkeypatch.setattr(variables.holders, "held_by", lambda _: [("stations", stations)])
    ids = stations.long()
    violation = make_violation("embedding.indices", ids, 0, value, {"indices": ids}, frames=[])
    found = variables.variable_facts(violation, ids, None)
    assert (found["name"], found.get("exact")) == ("stations", exact)


def test_the_float_that_they_were_made_of(monkeypatch):
    """A wrapper casts all that it is given; the module's own variable holds integers again."""
    ids = torch.tensor([[3, 31997, 9, 12], [5, 6, 7, 8]]).half().long()
    held = [("input_ids", ids), ('batch["ids"]', ids.half())]
    monkeypatch.setattr(variables.holders, "user_frames", lambda: [None])
    monkeypatch.setattr(variables.holders, "held_by", lambda _: held)
    violation = make_violation("embedding.indices", ids, 0, 32000, {"indices": ids}, frames=[])
    found = variables.variable_facts(violation, ids, None)
    assert found == {"name": 'batch["ids"]', "index": [0, 1], "rounded": "float16", "exact": 2048}
    held[1] = ('batch["ids"]', ids.float())
    assert variables.variable_facts(violation, ids, None)["name"] == "input_ids"


class Picked(Dataset):
    """Pixels of a map, of which chance picks some."""

    def __init__(self):
        self.maps = [torch.zeros(64, dtype=torch.long) for _ in range(4)]
        self.maps[2][10] = 30

    def __len__(self):
        return 4

    def __getitem__(self, at):
        return self.maps[at][torch.randperm(64)[:32]]


def test_a_label_that_the_record_has_is_not_drawn():
    asked = 0
    for labels in DataLoader(Picked(), batch_size=1, sampler=[2] * 40):
        if 30 not in labels:
            continue
        violation = make_violation("nll_loss_forward.target", labels, 0, 20, {"target": labels}, frames=[])
        found = which.sample_of(violation, None, False, [])
        assert found["dataset_index"] == 2 and "by" not in found
        asked += 1
    assert asked


class TextConfig:
    def __init__(self, **ids):
        self.__dict__.update(ids)


def test_special_ids_of_a_config_inside_another():
    config = TextConfig(bos_token_id=2, text_config=TextConfig(bos_token_id=30522, pad_token_id=0))
    found = tables.special_ids()
    assert found["bos_token_id"] == 2
    assert found["text_config.bos_token_id"] == 30522
    assert found["text_config.pad_token_id"] == 0
    del config


class Filler:
    pad_to_multiple_of = None

    def __init__(self, multiple):
        if multiple is not None:
            self.pad_to_multiple_of = multiple

    def __call__(self, rows):
        return torch.stack(rows)


@pytest.mark.parametrize("multiple", [64, None])
def test_what_rows_are_filled_up_to(multiple):
    for words in DataLoader(WORDS, batch_size=4, collate_fn=Filler(multiple)):
        assert words.shape == (4, 6)
        assert hand.padded_to() == multiple


@pytest.mark.parametrize("kind", ["random", "torch", "numpy", "old numpy"])
def test_a_generator_of_the_data_sets_own_is_put_back(kind):
    if "numpy" in kind:
        numpy = pytest.importorskip("numpy")

    class Draws(Dataset):
        def __init__(self):
            if kind == "random":
                self.chance = random.Random(1)
                self.draw = lambda: self.chance.randint(0, 30)
            elif kind == "torch":
                self.chance = torch.Generator().manual_seed(1)
                self.draw = lambda: int(torch.randint(0, 31, (), generator=self.chance))
            elif kind == "numpy":
                self.chance = numpy.random.default_rng(1)
                self.draw = lambda: int(self.chance.integers(0, 31))
            else:
                self.chance = numpy.random.RandomState(1)
                self.draw = lambda: int(self.chance.randint(0, 31))

        def __len__(self):
            return 8

        def __getitem__(self, at):
            return torch.full((3,), float(at)), self.draw()

    def drawn(asks):
        draws, seen = Draws(), []
        for _, labels in DataLoader(torch.utils.data.Subset(draws, range(8)), batch_size=2):
            seen += labels.tolist()
            if asks and bool((labels >= 20).any()):
                violation = make_violation(
                    "nll_loss_forward.target", labels, 0, 20, {"target": labels}, frames=[]
                )
                assert which.sample_of(violation, None, False, [])["by"] == "drawn"
        return seen

    assert drawn(asks=True) == drawn(asks=False)
