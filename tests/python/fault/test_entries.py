"""The statement that made what a batch holds, followed from the failing line into the data set."""

import json

import pytest

torch = pytest.importorskip("torch")
from conftest import label_violation  # noqa: E402
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset  # noqa: E402
from trapline._fault.data import entries, seen  # noqa: E402
from trapline._fault.program import holders  # noqa: E402

pytestmark = pytest.mark.usefixtures("installed")
LEVELS = torch.arange(32).reshape(8, 4)
RAW = {"grade": [5, 3, 4, 1, 2, 5, 5, 1]}
TABLE = {"size": [3.0, 1.0, 2.0]}
TABLE["ratio"] = [one / max(TABLE["size"]) for one in TABLE["size"]]


def quoted(variable, tensor):
    found = entries.entry_facts(variable, tensor)
    return None if found is None else (found["name"], found["text"])


class Scaled(Dataset):
    def __init__(self, halves=False):
        self.images = LEVELS / 15.0
        self.bounds = [0]
        if halves:
            self.bounds = LEVELS[:, 0] / 2
        self.lines = []
        for at in range(8):
            length = at * 3 + 1
            self.lines.append(length)

    def __len__(self):
        return 8

    def __getitem__(self, i):
        places = torch.zeros(2, dtype=torch.long)
        for k, (low, high) in enumerate([(1, 2), (3, 4)]):
            places[k] = low * 16 + high
        return self.images[i].flatten(), torch.tensor(self.lines[i]), places, self.bounds


class Halved(Scaled):
    def __getitem__(self, i):
        import random

        if i > 90:
            return random.random(), 0, 0, 0
        return super().__getitem__(i)


class Keyed(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows["grade"])

    def __getitem__(self, i):
        return {"x": torch.ones(2), "stage": torch.tensor(self.rows["grade"][i] - 1)}


def test_a_member_of_the_data_set():
    for x, _, _, _ in DataLoader(Scaled(), batch_size=4):
        assert quoted("x", x) == ("self.images", "LEVELS / 15.0")


def test_a_class_that_gives_out_other_things_than_the_one_it_is_made_of():
    for x, _, _, _ in DataLoader(Halved(), batch_size=4):
        assert quoted("x", x) is None


def test_a_list_that_is_appended_to_and_a_tensor_that_is_written_to():
    loader = DataLoader(Subset(Scaled(), [1, 2]), batch_size=2)
    for number, (_, size, places, bounds) in enumerate(loader):
        assert quoted("size", size) == ("length", "at * 3 + 1"), number
        assert quoted("places", places) == ("places[k]", "low * 16 + high")
        assert quoted("bounds", bounds) is None  # an `if` decides


def inner(ind, table):
    ind = ind.unsqueeze(1).expand(-1, 2)
    return quoted("ind", ind), table


def test_through_functions_and_views():
    for batch in DataLoader(Scaled(), batch_size=2):
        size = batch[1].long()
        found, _ = inner(size, table=LEVELS)
        assert found == ("length", "at * 3 + 1")


def test_an_entry_of_a_record():
    for batch in DataLoader(Keyed(RAW), batch_size=4):
        stage = batch["stage"].to("cpu")
        assert quoted("stage", stage)[1] == "self.rows['grade'][i] - 1"
        x = batch["x"]
        assert quoted("x", x) is None


def pairs_of(records):
    firsts, seconds = zip(*records)
    return torch.stack(firsts), torch.tensor([one % 7 for one in seconds])


def handed_on(records):
    return torch.stack([record[0] for record in records]), torch.stack([one for _, one, _, _ in records])


def test_the_collate_function_makes_it_or_hands_it_on():
    twos = [(torch.ones(1), 11), (torch.ones(1), 12)]
    for _, y in DataLoader(twos, batch_size=2, collate_fn=pairs_of):
        assert quoted("y", y)[1] == "[one % 7 for one in seconds]"
    for x, y in DataLoader(Scaled(), batch_size=2, collate_fn=handed_on):
        assert quoted("x", x) == ("self.images", "LEVELS / 15.0")
        assert quoted("y", y) == ("length", "at * 3 + 1")


class Collator:
    def __init__(self, step):
        self.step = step

    def __call__(self, records):
        places = torch.arange(len(records)) * self.step
        return torch.stack([record[0] for record in records]), places

    def handing(self, records):
        return [record[1] for record in records], len(records)


def test_a_collator_and_a_method_of_one():
    for x, places in DataLoader(Scaled(), batch_size=2, collate_fn=Collator(3)):
        assert quoted("places", places) == ("places", "torch.arange(len(records)) * self.step")
        assert quoted("x", x) == ("self.images", "LEVELS / 15.0")
    for sizes, _ in DataLoader(Scaled(), batch_size=2, collate_fn=Collator(3).handing):
        assert quoted("sizes", sizes) == ("length", "at * 3 + 1")


class Ranges(Dataset):
    """Each record has numbers of its own, which a function counts."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return torch.ones(2), torch.arange(3) + i


def test_places_of_the_batch_are_no_records():
    for x, places in DataLoader(Scaled(), batch_size=2, collate_fn=Collator(3)):
        assert entries.entry_facts("places", places)["counts_batch"]
        assert "counts_batch" not in entries.entry_facts("x", x)
    for _, steps in DataLoader(Ranges(), batch_size=2):
        assert "arange(" in quoted("steps", steps)[1]
        assert "counts_batch" not in entries.entry_facts("steps", steps), "its records have them"


def test_a_tensor_data_set_and_a_column_of_a_table():
    inputs, ratio = torch.ones(3), torch.tensor(TABLE["ratio"])
    loader = DataLoader(TensorDataset(inputs, ratio), batch_size=3)
    for _, target in loader:
        text = "[one / max(TABLE['size']) for one in TABLE['size']]"
        assert quoted("target", target) == ("TABLE['ratio']", text)


def portions(count):
    for at in range(count):
        yield torch.ones(2), torch.arange(2) * 5 + at


def drawn_batch():
    offset = 3
    return torch.ones(2), torch.randint(0, 9, (2,)) + offset


def test_a_function_that_makes_batches():
    for x, y in portions(2):
        assert quoted("y", y)[1] == "torch.arange(2) * 5 + at"
        assert quoted("x", x) is None
    _, index = drawn_batch()
    assert quoted("index", index)[1] == "torch.randint(0, 9, (2,)) + offset"


def library():
    scope = {}
    text = (
        "def fit(step, loader):\n    for number, batch in enumerate(loader):\n        step(batch, number)\n"
    )
    exec(compile(text, torch.__file__, "exec"), scope)
    return scope["fit"]


def test_a_library_has_the_loop():
    found = []

    def step(batch, number):
        x, y, _, _ = batch
        found.append((number, quoted("x", x), quoted("y", y)))

    library()(step, DataLoader(Scaled(), batch_size=8))
    assert found == [(0, ("self.images", "LEVELS / 15.0"), ("length", "at * 3 + 1"))]


class Numbered(Dataset):
    """One number for each picture of a longer list, of which this split has some."""

    def __init__(self):
        self.labels = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
        self.ids = [9, 4, 1]

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        k = int(self.ids[i]) - 1
        return torch.ones(2), int(self.labels[k]), self.labels[k] * 2


def test_the_column_that_the_text_says():
    for _, y, twice in DataLoader(Numbered(), batch_size=3):
        facts = seen.seen_facts(label_violation(torch.zeros(3, 4), y), None)
        assert facts == {
            "min": 1,
            "max": 5,
            "count": 10,
            "source": "dataset",
            "kinds": 5,
            "gap": 0,
            "beyond": 4,
            "choice": True,
        }
        assert entries.column_of(twice) is None


def test_through_a_comprehension():
    for batch in DataLoader(Scaled(), batch_size=4):
        x_cat = batch[0]
        found = [quoted("x_cat", x_cat[:, i]) for i in range(1)]
        assert found == [("self.images", "LEVELS / 15.0")]


class Shifted(Scaled):
    def __getitem__(self, i):
        speaker = i % 4
        place = speaker
        if i:
            speaker = speaker + 4 * i
            place = 4 * i
        return torch.ones(2), torch.tensor(speaker), torch.tensor(place), 0


class Ranked(Dataset):
    def __init__(self, ranks, choices, order):
        self.ranks, self.choices = ranks, choices
        self.labels = order[LEVELS[:, 0].clamp(max=3)]
        self.read = []
        for name, (low, high) in parse("a\nb").items():
            self.read.append(high)

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.ranks[i], self.choices[i], self.labels[i], self.read[i % 2]


def parse(text):
    made = json.loads('{"a": [1, 2], "b": [3, 4]}')
    return made


def ranked(wide):
    ranks, choices = [], []
    for row in LEVELS:
        _, at = row.float().topk(2)
        ranks.append(at)
        choices.append(row // 2)
    return torch.stack(ranks), torch.stack(choices)


def test_through_a_call_that_gives_several_and_a_look_up():
    order = torch.randperm(4) if len(LEVELS) else None
    for ranks, choices, labels, read in DataLoader(Ranked(*ranked(2), order), batch_size=4):
        assert quoted("ranks", ranks) is None  # it is not the last that is given
        assert quoted("labels", labels) == ("self.labels", "order[LEVELS[:, 0].clamp(max=3)]")
        assert quoted("read", read) == ("made", 'json.loads(\'{"a": [1, 2], "b": [3, 4]}\')')
        assert quoted("choices", choices) is None


class Cached(Ranked):
    def __init__(self, order, best, halves):
        self.best, self.halves = best, halves

    def __getitem__(self, i):
        return self.best[i], self.halves[i]


def test_what_is_spread_over_the_last_parameters():
    for best, halves in DataLoader(Cached(None, *ranked(2)), batch_size=4):
        assert quoted("best", best) == ("_, at", "row.float().topk(2)")
        assert quoted("halves", halves) == ("", "row // 2")


def test_what_stands_in_the_call_itself(monkeypatch):
    live = holders.user_frames
    monkeypatch.setattr(
        holders, "user_frames", lambda: [one for one in live() if one.f_code.co_name.startswith("test_")]
    )

    def loss(scores, target):  # no frame of the program's, as PyTorch's own are
        return quoted("", target)

    for x, speaker, place, _ in DataLoader(Shifted(), batch_size=4):
        rows = place > 4
        found = loss(x[rows], speaker[rows])
        viewed = loss(x[rows], target=speaker[rows].view(-1))
        assert found == viewed == ("speaker", "speaker + 4 * i")
        other = loss(x[rows], speaker[rows] - 4000)  # no variable has these
        twice = loss(speaker[rows], speaker[rows])  # the one or the other
        assert other is None and twice is None
    for batch in DataLoader(Keyed(RAW), batch_size=4):
        found = loss(batch["x"], batch["stage"])
        assert found == ("", "self.rows['grade'][i] - 1")


def test_what_an_if_adds_to_it_is_what_to_look_at():
    for _, speaker, place, _ in DataLoader(Shifted(), batch_size=4):
        assert quoted("speaker", speaker) == ("speaker", "speaker + 4 * i")
        assert quoted("place", place) is None  # the one or the other


def test_nothing_is_said_of_what_two_may_have_given():
    for x, size, _, _ in DataLoader(Scaled(), batch_size=4):
        if len(x) > 2:
            size = size[:2]
        kept = [size]
        size += 1
        assert quoted("size", size) is None
        assert quoted("kept", kept[0]) is None
