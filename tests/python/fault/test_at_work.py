"""A bad value that the program computed: the batch it was made of, and the row where the rows prove it."""

import pytest
from conftest import make_violation, table_violation

torch = pytest.importorskip("torch")
import trapline._fault as fault  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from trapline._fault.data import batches, hand, which  # noqa: E402


@pytest.fixture(autouse=True)
def installed():
    fault.install()
    yield
    fault.uninstall()


def of(facts, *names):
    return tuple(facts.get("sample", {}).get(name) for name in names)


def loader_of(rows=24, size=6, width=4, **options):
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(2))
    return DataLoader(TensorDataset(x), batch_size=size, **options)


def test_all_of_it_is_bad_and_was_computed(facts_of):
    def step(codes):
        return facts_of(table_violation(torch.zeros(9, 2), codes))

    for number, (x,) in enumerate(loader_of()):
        if number == 2:
            facts = step(torch.full((6, 5), -1) + (x.sum() > 1e9).long())
            break
    assert of(facts, "by", "batch", "loader") == ("hand", 2, None)
    assert of(facts, "one_of", "row", "dataset_index") == ([12, 13, 14, 15, 16, 17], None, None)


def test_of_a_device_the_batch_of_the_call_is_named(facts_of):
    """Told late, when the program has gone on to the next batch; behind the loop it is nobody's."""

    def step(codes, serial):
        late = {"late": True, "contained": True, "batch": serial, "device": "cuda:0"}
        return facts_of({**table_violation(torch.zeros(9, 2), codes), **late})

    for number, (x,) in enumerate(loader_of()):
        if number == 2:
            codes, serial = torch.full((6, 5), -1) + (x.sum() > 1e9).long(), batches.newest_first()[0].serial
        if number == 3:
            facts = step(codes, serial)
    assert of(facts, "by", "batch", "loader") == ("hand", 2, None)
    assert of(facts, "one_of", "row", "dataset_index") == ([12, 13, 14, 15, 16, 17], None, None)
    del x
    assert "sample" not in step(codes, serial)


def test_a_loop_in_a_generator_expression(facts_of):
    def codes_of(x):
        return (x * 100).round().long().T.contiguous().flip(0)[:3]

    def of_batch(x):
        return facts_of(table_violation(torch.zeros(9, 2), codes_of(x)))

    facts = next(of_batch(x) for (x,) in loader_of())
    assert of(facts, "by", "batch", "of") == ("hand", 0, 6)


def test_no_batch_is_in_hand_behind_the_loop(facts_of):
    seen = []
    for (x,) in loader_of():
        seen.append(x.mean() * 1000)
    del x
    index = torch.stack(seen).long().abs() + 9
    assert "sample" not in facts_of(table_violation(torch.zeros(9, 2), index))


def test_a_number_that_is_too_large_in_one_row_alone(facts_of):
    """A target of several columns, computed of two of the batch's: 0.7 * a + 0.5 * b."""
    one, other = torch.full((16, 5), 0.2), torch.full((16, 5), 0.3)
    one[:, 1], other[:, 2] = torch.linspace(0, 0.4, 16), torch.linspace(0.5, 0, 16)
    one[9, 3] = other[9, 3] = 0.99
    for a, b in DataLoader(TensorDataset(one, other), batch_size=4):
        target = 0.7 * a + 0.5 * b
        if bool((target > 1).any()):
            args = {"self": torch.full((4, 5), 0.5), "target": target, "weight": None, "reduction": 1}
            violation = make_violation("binary_cross_entropy.target", target, 0, 1, args, bad=target > 1)
            facts = facts_of(violation)
            break
    assert of(facts, "batch", "row", "dataset_index", "by", "likely") == (2, 1, 9, "row", True)


def route(facts_of, x):
    """A table with a place for each of the tokens of an expert, as a mixture of experts has it."""
    tokens = x.reshape(-1, x.shape[-1])
    slot = torch.arange(len(tokens)).flip(0) % 22
    slot[24:] += 22
    args = {"self": torch.zeros(9, 40), "dim": 1, "index": slot}
    return facts_of(make_violation("scatter.index", slot, 0, 22, args)), tokens


@pytest.mark.parametrize("flattened", [True, False])
def test_several_entries_for_each_row_lie_one_after_the_other(facts_of, flattened):
    x = torch.randn(8, 4, 3, generator=torch.Generator().manual_seed(5))
    for (part,) in DataLoader(TensorDataset(x), batch_size=8, shuffle=False):
        given = part if flattened else part.transpose(0, 1).contiguous()
        facts, _ = route(facts_of, given)
    if not flattened:  # rows of time: nothing says where the batch's are
        assert of(facts, "row", "dataset_index") == (None, None)
    else:
        assert facts["index"] == [24] and of(facts, "row", "dataset_index", "by") == (6, 6, "place")


class Boxes(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.rand(3), {"labels": torch.tensor([9, 9] if i == 6 else [i % 3, 1])}


def test_labels_of_one_image_that_are_all_wrong(facts_of):
    def collate(samples):
        images, targets = zip(*samples)
        return list(images), list(targets)

    def model(images, targets):
        found = []
        for target in targets:
            chosen = target["labels"][torch.zeros(12, dtype=torch.long)]
            if int(chosen.max()) > 3:
                args = {"self": torch.zeros(12, 4), "dim": 1, "index": chosen}
                found.append(facts_of(make_violation("scatter.index", chosen, 0, 4, args)))
        return found[0] if found and images else None

    for images, targets in DataLoader(Boxes(), batch_size=2, collate_fn=collate):
        facts = model(images, targets)
        if facts is not None:
            break
    assert of(facts, "batch", "row", "dataset_index", "by") == (3, 0, 6, "value")


def test_a_run_of_places_is_no_batchs(facts_of):
    for (x,) in loader_of():
        facts = facts_of(table_violation(torch.zeros(4, 2), torch.arange(len(x))))
        break
    assert "sample" not in facts


def test_a_batch_of_one_is_in_hand_where_a_function_was_given_it(facts_of):
    """No size can tell: what is computed for one sample has as many rows as it likes."""

    def update(fix):
        codes = torch.full((16,), -1) + (fix.sum() > 1e9).long()
        return facts_of(table_violation(torch.zeros(9, 2), codes))

    def beside():
        return facts_of(table_violation(torch.zeros(9, 2), torch.full((16,), -1)))

    for number, (x,) in enumerate(loader_of(size=1)):
        if number == 7:
            facts, other = update(x[0]), beside()
            break
    assert of(facts, "by", "batch", "one_of") == ("hand", 7, [7])
    assert "sample" not in other


def test_of_several_epochs_the_batch_is_the_one_in_hand(facts_of):
    """Most of its rows are bad: no sample is to blame, and another epoch has a batch of the same number."""
    codes = torch.arange(48).reshape(12, 4)
    loader = DataLoader(TensorDataset(codes), batch_size=6)
    for _ in range(2):
        for (batch,) in loader:
            facts = facts_of(table_violation(torch.zeros(20, 2), batch)) if int(batch[0, 0]) else None
    assert of(facts, "by", "batch", "one_of", "dataset_index") == ("hand", 1, [6, 7, 8, 9, 10, 11], None)


def lists(batch):
    return [batch[at] for at in range(len(batch))]


@pytest.mark.parametrize("collate", [list, lists])
def test_a_batch_of_records_without_tensors(collate):
    """A server reads requests; the place beside the bad one says whose it is."""
    log = [{"text": f"number {at}", "bias": {at: 1}} for at in range(12)]

    def complete(requests):
        logits, rows, tokens = torch.zeros(len(requests), 8), torch.tensor([0, 2]), torch.tensor([1, 50])
        args = {"self": logits, "indices": [rows, tokens]}
        violation = make_violation("index_put.indices", tokens, -8, 8, args, frames=[])
        violation["scan"]["list_position"] = 1
        return which.sample_of(violation, None, False, [])

    for number, requests in enumerate(DataLoader(log, batch_size=4, collate_fn=collate)):
        if number == 1:
            found = complete(requests)
    assert (found["batch"], found["row"], found["dataset_index"]) == (1, 2, 6)


def test_records_of_an_older_batch_are_not_held():
    for _ in DataLoader([{"at": at} for at in range(8)], batch_size=2, collate_fn=list):
        pass
    assert [bool(batch.raw()) for batch in batches.newest_first()[:4]] == [True, True, False, False]


def test_the_bad_row_of_what_records_were_made_to():
    def encode(requests):
        ids = torch.arange(4 * 5).reshape(4, 5) % 7
        ids[3, 2] = 50
        violation = make_violation("embedding.indices", ids, 0, 8, {"indices": ids}, frames=[])
        return which.sample_of(violation, None, False, [])

    class Log(torch.utils.data.Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, at):
            return {"text": f"number {at}"}

    for number, requests in enumerate(DataLoader(Log(), batch_size=4, collate_fn=list)):
        if number == 2:
            found = encode(requests)
    assert (found["batch"], found["row"], found["dataset_index"], found["likely"]) == (2, 3, 11, True)


def test_what_a_loop_that_is_over_has_left_behind_is_not_in_hand():
    def behind():
        for (x,) in loader_of():
            kept = x.clone()
            assert len(kept) == 6
        return hand.in_hand()

    def used():
        for (x,) in loader_of():
            pass
        shown = x.sum()
        return hand.in_hand(), shown

    def within():
        for _ in range(2):
            for (x,) in loader_of():
                if float(x[0, 0]) == kept:
                    return hand.in_hand()
        return None

    kept = float(loader_of().dataset.tensors[0][6, 0])
    assert behind() is None
    assert used()[0].number == 3
    assert within().number == 1


def test_of_the_samples_of_a_batch_that_of_the_row_stands_first(facts_of):
    """The collate function's order is not known, and the labels were made of the batch."""

    def collate(samples):
        return torch.stack([x for (x,) in reversed(samples)])

    def step(batch):
        target = torch.zeros(len(batch), 4, dtype=torch.long)
        target[4, 1] = 7
        args = {"self": torch.rand(6, 5, 4), "target": target, "ignore_index": -100}
        return facts_of(make_violation("nll_loss2d_forward.target", target, 0, 5, args))

    x = torch.arange(96.0).reshape(24, 4)
    for number, batch in enumerate(DataLoader(TensorDataset(x), batch_size=6, collate_fn=collate)):
        if number == 2:
            facts = step(batch)
    assert of(facts, "batch", "likely") == (2, True)
    assert facts["sample"]["one_of"][0] == 16 and sorted(facts["sample"]["one_of"]) == [
        12,
        13,
        14,
        15,
        16,
        17,
    ]
