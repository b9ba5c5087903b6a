"""Batches that the program's own function collates: whose row it is, and what is no sample's own in it."""

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")
from torch.nn.utils.rnn import pad_sequence  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402
from trapline._fault.data import batches, order, rows_of, which  # noqa: E402
from trapline._library import capi  # noqa: E402

pytestmark = pytest.mark.usefixtures("installed")


class Sentences(Dataset):
    """Sentence n has the words 100 n, 100 n + 1 ... and a tag for each; 9 is the tag of none."""

    def __len__(self):
        return 8

    def __getitem__(self, at):
        length = 3 + (3 * at + 1) % 4
        return 100 * at + torch.arange(length), (at + torch.arange(length)) % 7


SENTENCES = Sentences()  # a batch outlives its loader, not the data set


def padded(rows, sort=False, front=False):
    rows = sorted(rows, key=lambda row: len(row[0])) if sort else rows
    if front:
        width = max(len(row[1]) for row in rows)
        tags = torch.stack([torch.cat([torch.full((width - len(t),), 9), t]) for _, t in rows])
    else:
        tags = pad_sequence([row[1] for row in rows], batch_first=True, padding_value=9)
    return pad_sequence([row[0] for row in rows], batch_first=True), tags


def first_bad(collate):
    """The sample facts of the first batch whose tags are looked up in a table of 7."""

    def step(words, tags):
        violation = make_violation("index.indices", tags, -7, 7, {"indices": [tags]}, frames=[])
        return which.sample_of(violation, None, False, [])

    for words, tags in DataLoader(SENTENCES, batch_size=4, collate_fn=collate):
        return step(words, tags)


@pytest.mark.parametrize("front", [False, True])
def test_what_short_rows_are_filled_with_is_no_sample_s(front):
    found = first_bad(lambda rows: padded(rows, front=front))
    assert (found["row"], found["dataset_index"], found["by"]) == (0, 0, "padding")


def test_what_a_sample_has_at_its_end_is_its_own():
    class Ends(Sentences):
        def __getitem__(self, at):
            words, tags = super().__getitem__(at)
            tags[-1] = 9 if at == 2 else 0
            return words, tags

    def step(tags):
        violation = make_violation("index.indices", tags, -7, 7, {"indices": [tags]}, frames=[])
        return which.sample_of(violation, None, False, [])

    def collate(rows):
        return tuple(pad_sequence(part, batch_first=True) for part in zip(*rows))

    ends = Ends()
    for _, tags in DataLoader(ends, batch_size=4, collate_fn=collate):
        found = step(tags)
        break
    assert (found["dataset_index"], "by" in found) == (2, False)


def newest(collate, data=None):
    for _ in DataLoader(data or SENTENCES, batch_size=4, collate_fn=collate):
        pass
    return next(iter(batches.newest_first()))


def test_the_order_is_kept_where_the_rows_are_the_samples_own():
    assert order.is_kept(newest(padded))
    assert not order.is_kept(newest(lambda rows: padded(rows, sort=True)))
    assert not order.is_kept(newest(lambda rows: padded(rows[::-1])))


def test_rows_that_are_all_alike_prove_no_order():
    assert not order.is_kept(newest(torch.stack, [torch.zeros(3)] * 8))


def texts(rows, sort):
    """Of texts nothing in the batch is the sample's own."""
    numbers = [torch.tensor([ord(letter) for letter in text]) for text in rows]
    return pad_sequence(sorted(numbers, key=len) if sort else numbers, batch_first=True)


@pytest.mark.parametrize("sort", [False, True])
def test_nothing_speaks_against_the_order_but_sorted_lengths(sort):
    data = ["abc", "a", "abcdef", "ab", "abcd", "a", "abcde", "abc"]
    assert order.may_be_kept(newest(lambda rows: texts(rows, sort), data)) is not sort


def test_the_row_of_which_nothing_can_be_drawn():
    weights = torch.rand(4, 5) + 0.1
    weights[2] = 0
    scan = {"first": 10, "lo": None, "hi": None}
    assert rows_of.only_bad_row(weights, scan, capi.PREDICATE_PROBABILITY_ROWS) == 2
    weights[3] = 0
    assert rows_of.only_bad_row(weights, scan, capi.PREDICATE_PROBABILITY_ROWS) is None


def test_a_last_mark_beside_other_filling_is_none():
    """The stop index of the longest row, where the others are filled with another number."""

    def collate(rows):
        width = max(len(row[1]) for row in rows) + 1
        tags = torch.full((len(rows), width), -1)
        for at, (_, t) in enumerate(rows):
            tags[at, : len(t)] = t
            tags[at, len(t)] = 9
        return pad_sequence([row[0] for row in rows], batch_first=True), tags

    found = first_bad(collate)
    assert found is not None and found.get("by") != "padding"


TALKS = ["a b", "a x c d q f g h i", "a b c", "a"]


def answers(rows):
    """What the decoder has to say, filled with what losses leave out; and a source that is longer."""
    numbers = [torch.tensor([ord(word) for word in TALKS[row].split()]) for row in rows]
    return {
        "source": torch.ones(len(rows), 14, dtype=torch.long),
        "attention_mask": torch.ones(len(rows), 14, dtype=torch.long),
        "labels": pad_sequence(numbers, batch_first=True, padding_value=-100),
    }


@pytest.mark.parametrize("keeps", [True, False])
def test_whose_labels_are_too_long_for_a_decoder(keeps):
    def step(batch):
        places = torch.arange(9)
        violation = make_violation("embedding.indices", places, 0, 8, {"indices": places}, frames=[])
        return which.sample_of(violation, None, True, [])

    rows = [0, 1, 2, 3] if keeps else [3, 0, 2, 1]  # by length: they may have been sorted
    for batch in DataLoader(rows, batch_size=4, collate_fn=answers):
        found = step(batch)
        break
    assert (found.get("dataset_index"), found.get("by")) == ((1, "length") if keeps else (None, None))
    assert found.get("likely") == (True if keeps else None), "the program's own function put them together"


@pytest.mark.parametrize("lengths, longest", [((2, 5, 3), 1), ((5, 2, 5), None)])
def test_whose_parts_are_too_many(lengths, longest):
    """Documents of paragraphs, [rows, parts, words]: filled up with parts of 0 alone."""
    documents = [torch.full((parts, 3), 4) for parts in lengths]

    def step(batch):
        places = torch.arange(batch.shape[1])
        violation = make_violation("embedding.indices", places, 0, 4, {"indices": places}, frames=[])
        return which.sample_of(violation, None, True, [])

    for batch in DataLoader([0, 1, 2], batch_size=3, collate_fn=lambda rows: pad(documents, rows)):
        found = step(batch)
        break
    assert (found.get("dataset_index"), found.get("by")) == (longest, longest and "length")


def pad(documents, rows):
    return pad_sequence([documents[row] for row in rows], batch_first=True)


class Texts(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, at):
        return " ".join(f"w{at}{n}" for n in range(1 + at % 3)) if at != 4 else ""


TEXTS = Texts()


def numbered(texts):
    """What the program's collate function makes of texts: no number of them is in the data."""
    rows = [[1 + sum(map(ord, word)) % 50 for word in text.split()] for text in texts]
    width = max(map(len, rows))
    return torch.tensor([row + [0] * (width - len(row)) for row in rows])


def kept_of(collate):
    for ids in DataLoader(TEXTS, batch_size=6, collate_fn=collate):
        return order.is_kept(batches.newest_first()[0]), ids
    return None


def test_rows_that_a_collate_function_makes_of_each_text_alone():
    kept, ids = kept_of(numbered)
    assert kept and ids.shape == (6, 3) and not ids[4].any()


def test_rows_that_it_sorts_or_draws_or_makes_of_all_are_not_known_to_be_in_order():
    assert not kept_of(lambda texts: numbered(sorted(texts)))[0]
    assert not kept_of(lambda texts: numbered(texts) + torch.randint(0, 9, (len(texts), 1)))[0]
    assert not kept_of(lambda texts: numbered(texts) + len(texts))[0]
