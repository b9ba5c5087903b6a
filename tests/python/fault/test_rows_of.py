"""A sample by its row alone: bags, batches and chunks that the program makes itself, what its loop is at."""

from collections import deque

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402
from trapline._fault.data import records as records_  # noqa: E402
from trapline._fault.data import rows_of, which  # noqa: E402

pytestmark = pytest.mark.usefixtures("installed")


class Clicks(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return [index % 5, 3, 7 if index == 9 else 1][: 2 + index % 2]


def bags(rows):
    begins = [sum(len(row) for row in rows[:at]) for at in range(len(rows))]
    hashed = [-7 if number == 7 else number for row in rows for number in row]
    return torch.tensor(hashed), torch.tensor(begins)


def test_the_bag_of_a_sample():
    for values, offsets in DataLoader(Clicks(), batch_size=4, collate_fn=bags):
        if int(values.min()) < 0:
            args = {"indices": values, "offsets": offsets}
            violation = make_violation("_embedding_bag.indices", values, 0, 50, args, frames=[])
            found = which.sample_of(violation, None, False, [])
    assert (found["batch"], found["row"], found["dataset_index"]) == (2, 1, 9)
    assert found["by"] == "row" and found["likely"] is True


def test_other_bags_of_the_batch_are_bad_too():
    for values, offsets in DataLoader(Clicks(), batch_size=4, collate_fn=bags):
        if int(values.min()) < 0:
            values[-1] = -7
            violation = make_violation(
                "_embedding_bag.indices", values, 0, 50, {"indices": values, "offsets": offsets}, frames=[]
            )
            found = which.sample_of(violation, None, False, [])
    assert (found["row"], found["dataset_index"], found["likely"]) == (1, 9, True)
    assert "by" not in found  # its row alone is bad


def test_time_steps_that_chance_drew_are_no_sample_s():
    """A number for each sample that the batch does not have: only the batch at work is named."""

    def step(images, drawn):
        violation = make_violation("index.indices", drawn, 0, 100, {"indices": [drawn]}, frames=[])
        return which.sample_of(violation, None, False, [])

    for number, images in enumerate(DataLoader([torch.rand(3) for _ in range(16)], batch_size=8)):
        drawn = torch.tensor([5, 80, 31, 100, 2, 64, 17, 9])
        found = step(images, drawn) if number else None
    assert found["by"] == "hand" and "likely" not in found


def broken(rows, row):
    probabilities = torch.full((rows, 5), 0.2)
    probabilities[row] = float("nan")
    return probabilities


def cut(probabilities):
    scan = {"first": int((~probabilities.isfinite()).reshape(-1).nonzero()[0]), "lo": None, "hi": None}
    return rows_of.cut_by_hand(probabilities, scan, None)


def test_the_record_of_a_chunk():
    fields = [{"name": f"field {n}"} for n in range(11)]
    chunk = fields[8:11]
    assert len(chunk) == 3
    assert cut(broken(3, 1)) == {
        "dataset_index": 9,
        "dataset": {"name": "fields", "type": "list", "length": 11},
        "row": 1,
        "by": "row",
        "likely": True,
    }


def test_two_bad_rows_name_no_record():
    fields = [{"name": f"field {n}"} for n in range(11)]
    chunk = fields[8:11]
    probabilities = broken(3, 1)
    probabilities[2] = float("nan")
    assert cut(probabilities) is None and chunk


def test_what_a_loop_is_at():
    histories = {7: [1, 2], 33: [3, 4, 5], 51: [6]}
    for user, history in sorted(histories.items()):
        if len(history) > 2:
            found = rows_of.at_in_loop()
    assert user == 51
    assert found == {
        "dataset_index": 33,
        "dataset": {"name": "histories", "type": "dict", "length": 3},
        "by": "loop",
        "likely": True,
    }


def test_a_loop_over_the_tensors_of_a_batch_is_at_a_sample():
    records = [(torch.full((20 + at,), float(at)), at % 2) for at in range(12)]

    def lists(batch):
        return [one for one, _ in batch], torch.tensor([label for _, label in batch])

    found = None
    for signals, labels in DataLoader(records, batch_size=4, sampler=[5, 3, 7, 1, 0, 2], collate_fn=lists):
        for at, signal in enumerate(signals):
            if len(signal) == 27 and len(labels) == 4:
                found = rows_of.at_in_loop()
        break
    assert found is not None and at == 3
    assert {name: found[name] for name in ("dataset_index", "batch", "row", "likely")} == {
        "dataset_index": 7,
        "batch": 0,
        "row": 2,
        "likely": True,
    }


def test_a_loop_over_numbers_is_at_nothing():
    for epoch in range(3):
        found = rows_of.at_in_loop()
    assert epoch == 2 and found is None


def test_a_loop_over_settings_or_names_is_at_no_data():
    found = []
    settings = [{"lr": 0.1, "width": 64}, {"lr": 0.01, "width": 32}]
    for setting in settings:
        found.append(rows_of.at_in_loop())
    splits = ["train", "validation"]
    for split in splits:
        found.append(rows_of.at_in_loop())
    assert found == [None] * 4 and setting and split


class Request:
    def __init__(self, number, tokens):
        self.number, self.tokens = number, tokens


def test_a_loop_over_objects_that_hold_the_number():
    requests = [Request(number, [4, 5, 900 if number == 2 else 6]) for number in range(3)]
    found = []
    for request in requests:
        found.append(rows_of.at_in_loop({"value": 900}))
    assert found[:2] == [None, None] and request is requests[2]
    assert (found[2]["dataset"]["name"], found[2]["dataset_index"]) == ("requests", 2)
    assert rows_of.at_in_loop({"value": 900}) is None


def test_a_loop_over_texts():
    prompts = ["once upon a time", "the end of it", "a third one"]
    for at, prompt in enumerate(prompts):
        if at == 1:
            found = rows_of.at_in_loop()
    assert (found["dataset_index"], found["dataset"]["name"]) == (1, "prompts") and prompt


def test_the_record_that_was_taken_by_its_number():
    patches = torch.rand(40, 3)
    order = torch.arange(39, -1, -1)

    def features(given):
        made = torch.zeros(len(given), 5, dtype=torch.long)
        made[2, 4] = 9
        violation = make_violation("scatter_add.index", made, 0, 9, {"index": made}, frames=[])
        return which.sample_of(violation, None, False, [])

    rows = order[6:12]
    x = patches[rows] * 2
    found = features(x)
    assert (found["dataset"]["name"], found["dataset_index"], found["row"]) == ("patches", 31, 2)
    assert found["by"] == "row" and found["likely"] is True


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, at):
        return torch.full((2,), float(at))


def test_the_row_that_another_index_gives():
    """`out[image, cell]`: `image` says which row of the batch each box is of."""

    def loss(pictures, image, cell):
        violation = make_violation("index.indices", cell, -8, 8, {"indices": [image, cell]}, frames=[])
        return which.sample_of(violation, None, False, [])

    for number, pictures in enumerate(DataLoader(Pictures(), batch_size=4)):
        if number == 2:
            found = loss(pictures, torch.tensor([0, 0, 1, 2, 2, 3]), torch.tensor([1, 2, 3, 8, 4, 0]))
    assert (found["dataset_index"], found["row"], found["by"]) == (10, 2, "row")


def test_a_record_of_numbers_without_the_bad_one_is_not_to_blame():
    for _record in [[1, 2], [3, 4]]:
        pass
    records = {7: [1, 2], 9: [3, 4]}
    for key, record in records.items():
        found = rows_of.at_in_loop({"value": 37})
        held = rows_of.at_in_loop({"value": 4})
    assert key == 9 and record and found is None
    assert held["dataset_index"] == 9


def test_the_row_with_another_number_of_places():
    """Four places for the features of a picture in each text, and eight in one."""

    def merge(pictures, slots):
        assert len(pictures) == len(slots)
        return rows_of.odd_one(slots[..., None].expand(-1, -1, 6))

    for number, pictures in enumerate(DataLoader(Pictures(), batch_size=4)):
        slots = torch.zeros(4, 18, dtype=torch.bool)
        slots[:, :4] = True
        slots[1, : 8 if number == 2 else 4] = True
        found = merge(pictures, slots)
        assert (found is None) == (number < 2)
    assert (found["dataset_index"], found["row"], found["by"]) == (9, 1, "row")


def test_the_row_that_another_index_gives_in_any_order():
    """A matcher's own index of the batch, sorted by score and not by the pictures."""

    def loss(pictures, cell):
        beside = torch.tensor([3, 0, 2, 1, 0, 2])
        violation = make_violation("index.indices", cell, -8, 8, {"indices": [beside, cell]}, frames=[])
        violation["scan"]["list_position"] = 1
        return which.sample_of(violation, None, False, [])

    for number, pictures in enumerate(DataLoader(Pictures(), batch_size=4)):
        if number == 2:
            found = loss(pictures, torch.tensor([1, 2, 3, 8, 4, 0]))
    assert (found["dataset_index"], found["row"], found["by"]) == (9, 1, "row")


def test_a_place_to_write_to_is_no_sample_by_its_value():
    records = deque([[5, 7], [100, 3], [8, 9], [4, 4]])

    def scatter(places, contract):
        violation = make_violation(contract, places, 0, 100, {"index": places}, frames=[])
        return records_.sample_facts(violation)

    places = torch.tensor([100, 1, 2])
    assert scatter(places, "index_copy.index") is None
    assert scatter(places, "index_select.index")["dataset_index"] == 1 and records


def test_the_row_that_is_written_beside_the_place():
    """`logits[rows, tokens]` with a row for each sample says it, however few rows are named."""

    def bias(pictures, logits, rows, tokens):
        args = {"self": logits, "indices": [rows, tokens]}
        violation = make_violation("index_put.indices", tokens, -8, 8, args, frames=[])
        violation["scan"]["list_position"] = 1
        return which.sample_of(violation, None, False, [])

    rows, tokens = torch.tensor([1, -1]), torch.tensor([2, 50])
    for number, pictures in enumerate(DataLoader(Pictures(), batch_size=4)):
        if number == 2:
            found = bias(pictures, torch.zeros(4, 8), rows, tokens)
            other = bias(pictures, torch.zeros(5, 8), rows, tokens)
    assert (found["dataset_index"], found["row"], found["by"]) == (11, 3, "row")
    assert "row" not in other


def graphs(samples):
    nodes = torch.cat([torch.full((3,), at) for at in range(len(samples))])
    begins = torch.cat([torch.tensor([0, 1, 1]) + 3 * at for at in range(len(samples))])
    return torch.stack(samples), nodes, begins


def test_the_graph_of_an_edge():
    """The node that an edge begins at is some graph's: `owner[begins]`."""

    def message(owner, begins, bins):
        violation = make_violation("embedding.indices", bins, 0, 8, {"indices": bins}, frames=[])
        return which.sample_of(violation, None, False, [])

    data = list(torch.arange(24.0).reshape(12, 2))
    for number, (x, owner, begins) in enumerate(DataLoader(data, batch_size=4, collate_fn=graphs)):
        begins[-1] = 11
        bins = torch.tensor([1, 2, 0, 4, 3, 9, 1, 1, 2, 7, 0, 5])
        if number == 2:
            found = message(owner, begins, bins)
    assert (found["dataset_index"], found["row"], found["likely"]) == (9, 1, True)


class Scans:
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return {"xyz": torch.zeros(4, 3), "at": torch.tensor([i])}


def test_what_a_loop_asks_for_by_its_number():
    scans, found, losses = Scans(), [], [0.0, 0.0, 0.0]
    for step in range(len(scans)):
        scan = scans[step]
        found.append(rows_of.at_in_loop())
        losses[step] = float(scan["at"])
    assert [one["dataset_index"] for one in found] == [0, 1, 2]
    assert found[0]["dataset"] == {"name": "scans", "type": "Scans", "length": 3}
    regions, order = [Scans(), Scans(), Scans()], [2, 0, 1]
    for at, place in enumerate(order):
        region = regions[place]
        if at == 1:
            found = rows_of.at_in_loop()
    assert (found["dataset_index"], found["dataset"]["name"], found["by"]) == (
        0,
        "regions",
        "loop",
    ) and region


def test_what_a_loop_asks_for_may_be_of_two():
    images, masks = Scans(), Scans()
    for step in range(2):
        pair = images[step], masks[step]
        assert rows_of.at_in_loop() is None and pair
    rates, names = [0.1, 0.01, 0.001], ["train", "test"]
    tools = [torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1) for _ in names]
    for stage in range(2):
        rate, name, tool = rates[stage], names[stage], tools[stage]
        assert rows_of.at_in_loop() is None and rate and name and tool


def test_words_of_a_text_are_no_records_of_a_vocabulary():
    words = ["<pad>", "git", "add", "-a", "main.py", "notes.txt"]
    prompt = [words[1], words[2], words[4]]
    beams = torch.tensor([[0], [1], [5]])
    scan = {"first": 2, "value": 5, "lo": 0, "hi": 5, "also": None, "bad": 1, "total": 3}
    assert rows_of.cut_by_hand(beams, scan, None) is None and prompt


def test_a_loop_that_takes_a_record_apart():
    meshes = [((torch.rand(4, 3), torch.arange(6).reshape(2, 3)), label) for label in range(6)]
    found = []
    for (points, faces), label in meshes:
        if label == 4:
            found.append(rows_of.at_in_loop())
            assert len(points) == 4 and len(faces) == 2
    assert (found[0]["dataset_index"], found[0]["dataset"]["name"]) == (4, "meshes")


def test_the_entry_that_a_function_was_given():
    orders = [[n, n + 1, 2 * n] for n in range(30)]
    chunk = orders[10:16]
    found = rows_of.entry_given([0.5, list(orders[12])])
    assert (found.sample["dataset"]["name"], found.sample["dataset_index"]) == ("orders", 12)
    assert (found.count, found.place) == (len(chunk), 2), "the shortest list that has it is what is worked on"
    pairs = [(torch.tensor([n, 3]), n) for n in range(9)]
    found = rows_of.entry_given([torch.tensor([4, 3])])
    assert (found.sample["dataset"]["name"], found.sample["dataset_index"]) == ("pairs", 4) and pairs
    orders[20] = list(orders[12])
    del chunk
    assert rows_of.entry_given([list(orders[12])]) is None, "two have it"
    assert rows_of.entry_given([torch.tensor([4])]) is None, "one number is easily another's"


class Turned(torch.utils.data.Dataset):
    """The ids that are kept are drawn anew each time; nearly all are beyond the table."""

    def __init__(self):
        self.random = torch.Generator()

    def __len__(self):
        return 8

    def __getitem__(self, at):
        return 60 + torch.randperm(500, generator=self.random)[:4]


def test_what_is_bad_in_most_rows_is_no_draw():
    for ids in DataLoader(Turned(), batch_size=8):
        violation = make_violation("embedding.indices", ids, 0, 50, {"indices": ids}, frames=[])
        found = which.sample_of(violation, None, False, [])
    assert (found["batch"], found["by"]) == (0, "hand") and "dataset_index" not in found


def cells(points):
    return (points * 4).long()


def test_the_record_that_the_statement_computes_of():
    scans = [torch.rand(6) + at for at in range(7)]
    others = torch.arange(6)
    found = []
    for points in scans:
        cell = cells(points) + 1
        apart = others + 1
        found.append((rows_of.at_in_loop({"value": 881}, cell), rows_of.at_in_loop({"value": 881}, apart)))
    taken, apart = found[3]
    assert taken["by"] == "loop" and taken["dataset_index"] == 3, taken
    assert apart is None, "which has nothing of the record"
