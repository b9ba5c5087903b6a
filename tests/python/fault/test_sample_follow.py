"""A bad element that is not simply one of the batch's: shifted, padded, put together, computed."""

from collections import UserDict

import pytest
from conftest import label_violation, make_violation, table_violation

torch = pytest.importorskip("torch")
import trapline._fault as fault  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402


@pytest.fixture(autouse=True)
def installed():
    fault.install()
    yield
    fault.uninstall()


def of(facts, *names):
    return tuple(facts["sample"].get(name) for name in names)


def in_hand(facts):
    """Number and size of the batch that is only the place where it happened."""
    sample = facts["sample"]
    assert sample["by"] == "hand" and "row" not in sample and "dataset_index" not in sample
    return sample["batch"], sample["of"]


def ids_of(rows=24, length=10, bad=(13, 4), value=99):
    ids = torch.randint(0, 50, (rows, length), generator=torch.Generator().manual_seed(3))
    ids[bad] = value
    return ids


def test_labels_shifted_and_padded_as_in_a_causal_model(facts_of):
    for (labels,) in DataLoader(TensorDataset(ids_of(value=-1)), batch_size=6):
        padded = nn.functional.pad(labels, (0, 1), value=-100)
        target = padded[..., 1:].contiguous().view(-1)
        if int(target[target != -100].min()) < 0:
            facts = facts_of(label_violation(torch.zeros(60, 50), target))
            break
    assert of(facts, "batch", "row", "dataset_index", "likely") == (2, 1, 13, None)


def test_a_whole_batch_padded_with_minus_one(facts_of):
    ids = ids_of(rows=6, bad=(0, 0), value=3)
    ids[4, 7:] = -1
    ids[1, 9:] = -1
    for (labels,) in DataLoader(TensorDataset(ids), batch_size=6):
        target = nn.functional.pad(labels, (0, 1), value=-100)[..., 1:].contiguous().view(-1)
        facts = facts_of(label_violation(torch.zeros(60, 50), target))
    assert of(facts, "row", "dataset_index") == (1, 1)


def test_decoder_ids_shifted_right(facts_of):
    for (labels,) in DataLoader(TensorDataset(ids_of()), batch_size=6):
        decoder_ids = labels.new_zeros(labels.shape)
        decoder_ids[..., 1:] = labels[..., :-1].clone()
        if int(decoder_ids.max()) > 49:
            facts = facts_of(table_violation(torch.zeros(50, 2), decoder_ids))
            break
    assert facts["index"] == [1, 5]
    assert of(facts, "batch", "row", "dataset_index") == (2, 1, 13)


def test_a_start_token_of_the_model_is_no_samples(facts_of):
    for (labels,) in DataLoader(TensorDataset(ids_of(value=1)), batch_size=6):
        decoder_ids = labels.new_full(labels.shape, 205)
        decoder_ids[..., 1:] = labels[..., :-1].clone()
        facts = facts_of(table_violation(torch.zeros(205, 2), decoder_ids))
        break
    assert in_hand(facts) == (0, 6)


def test_only_the_places_that_a_mask_or_a_value_leaves(facts_of):
    ids = ids_of()
    ids[:, 8:] = -100
    mask = torch.ones_like(ids)
    mask[::2, 6:] = 0
    for labels, keep in DataLoader(TensorDataset(ids, mask), batch_size=6):
        if int(labels.max()) > 49:
            by_value = facts_of(
                label_violation(torch.zeros(48, 50), labels.view(-1)[labels.view(-1) != -100])
            )
            chosen = labels.view(-1)[keep.view(-1) == 1]
            by_mask = facts_of(label_violation(torch.zeros(len(chosen), 50), chosen))
            break
    assert of(by_value, "row", "dataset_index") == (1, 13)
    assert of(by_mask, "row", "dataset_index") == (1, 13)


class Texts(Dataset):
    lengths = [5, 9, 3, 30, 7, 12, 31, 4]

    def __init__(self, pad=None):
        self.pad = pad

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return {"input_ids": [1 + (i + k) % 7 for k in range(self.lengths[i])], "label": i % 2}


def pad(samples):
    longest = max(len(s["input_ids"]) for s in samples)
    ids = torch.zeros(len(samples), longest, dtype=torch.long)
    mask = torch.zeros(len(samples), longest, dtype=torch.long)
    for row, sample in enumerate(samples):
        ids[row, : len(sample["input_ids"])] = torch.tensor(sample["input_ids"])
        mask[row, : len(sample["input_ids"])] = 1
    return UserDict({"input_ids": ids, "attention_mask": mask})


def position_facts(facts_of, input_ids, table=16):
    """As a model's forward(): nothing of the batch is in the positions themselves."""
    position_ids = torch.arange(input_ids.shape[1]).unsqueeze(0)
    wpe = nn.Embedding(table, 2)
    return facts_of(table_violation(wpe.weight, position_ids)), wpe


def test_the_text_that_is_too_long_is_the_longest_of_its_batch(facts_of):
    data = Texts()
    loader = DataLoader(data, batch_size=4, collate_fn=pad)
    for batch in loader:
        facts, _ = position_facts(facts_of, **{"input_ids": batch["input_ids"]})
        if facts["index"] == [0, 16]:
            break
    assert facts["table"] == "position"
    assert of(facts, "batch", "dataset_index", "by", "likely") == (0, 3, "length", None)
    assert of(facts, "loader") == ("loader",)


def test_the_tokens_that_a_prompt_tuner_puts_before_a_text_are_not_the_texts(facts_of, monkeypatch):
    from trapline._fault.model import models

    monkeypatch.setattr(models, "virtual_tokens", lambda: 5)

    def forward(input_ids):
        wpe = nn.Embedding(16, 2)
        position_ids = torch.arange(input_ids.shape[1] + 5).unsqueeze(0)
        return facts_of(table_violation(wpe.weight, position_ids)), wpe

    for batch in DataLoader(Texts(), batch_size=4, collate_fn=pad):
        facts, _ = forward(**{"input_ids": batch["input_ids"]})
        break
    assert facts["virtual_tokens"] == 5
    assert of(facts, "batch", "dataset_index", "by") == (0, 3, "length")


def test_equally_long_texts_are_all_named(facts_of):
    rows = torch.randint(1, 50, (30, 20))
    for (input_ids,) in DataLoader(TensorDataset(rows), batch_size=10, sampler=list(range(29, -1, -1))):
        facts, _ = position_facts(facts_of, input_ids)
        break
    assert facts["sample"]["one_of"] == [29, 28, 27, 26, 25, 24, 23, 22] and facts["sample"]["of"] == 10
    assert "dataset_index" not in facts["sample"] and "row" not in facts["sample"]


def test_a_batch_read_ahead_is_not_the_current_one(facts_of):
    """accelerate's loaders hold the next batch already."""
    ahead = iter(DataLoader(Texts(), batch_size=4, collate_fn=pad))
    current, _later = next(ahead), next(ahead)
    del _later
    facts, _ = position_facts(facts_of, current["input_ids"])
    assert of(facts, "batch", "dataset_index") == (0, 3)


def test_generated_text_has_no_sample(facts_of):
    for _batch in DataLoader(Texts(), batch_size=4, collate_fn=pad):
        pass
    del _batch
    facts, _ = position_facts(facts_of, torch.ones(1, 40, dtype=torch.long))
    assert "sample" not in facts


class Boxes(Dataset):
    """Pictures with 1 to 4 boxes; class 9 of 9 is in sample 6."""

    def __len__(self):
        return 12

    def boxes(self, i):
        count = i % 4 + 1
        boxes = torch.rand(count, 5, generator=torch.Generator().manual_seed(i))
        boxes[:, 0] = (torch.arange(count) * 3 + i) % 9
        if i == 6:
            boxes[1, 0] = 9
        return boxes

    def __getitem__(self, i):
        return torch.zeros(3, 4, 4), self.boxes(i)


def by_image_column(samples):
    rows = [torch.cat([torch.full((len(b), 1), float(i)), b], 1) for i, (_, b) in enumerate(samples)]
    return torch.stack([image for image, _ in samples]), torch.cat(rows)


def one_hot_violation(index):
    args = {"self": torch.zeros(len(index), 9), "dim": 1, "index": index}
    return make_violation("gather.index", index, 0, 9, args)


def test_boxes_with_an_image_column(facts_of):
    for _, targets in DataLoader(Boxes(), batch_size=4, collate_fn=by_image_column):
        classes = targets[:, 1].long().view(-1, 1)
        if int(classes.max()) == 9:
            facts = facts_of(one_hot_violation(classes))
            break
    assert of(facts, "batch", "dataset_index", "likely") == (1, 6, None)


def test_augmented_boxes_are_only_likely(facts_of):
    class Augmented(Boxes):
        calls = 0

        def __getitem__(self, i):
            Augmented.calls += 1
            image, boxes = super().__getitem__(i)
            boxes = boxes.clone()
            boxes[:, 1:] += 0.01 * Augmented.calls
            boxes[:, 0] += 0 if Augmented.calls < 13 else 20
            return image, boxes

    for _, targets in DataLoader(Augmented(), batch_size=4, collate_fn=by_image_column):
        classes = targets[:, 1].long().view(-1, 1)
        if int(classes.max()) == 9:
            facts = facts_of(one_hot_violation(classes))
            break
    assert of(facts, "batch", "row", "by", "likely") == (1, 2, "column", True)


@pytest.mark.parametrize("together", [True, False])
def test_lists_of_targets(facts_of, together):
    def collate(samples):
        images, boxes = zip(*samples)
        return list(images), [{"boxes": b[:, 1:], "labels": b[:, 0].long()} for b in boxes]

    for _, targets in DataLoader(Boxes(), batch_size=4, collate_fn=collate):
        labels = [target["labels"] for target in targets]
        if any(int(part.max()) == 9 for part in labels):
            bad = torch.cat(labels) if together else labels[2] + 0
            facts = facts_of(label_violation(torch.zeros(len(bad), 9), bad))
            break
    assert of(facts, "batch", "row", "dataset_index") == (1, 2, 6)


@pytest.mark.parametrize(
    "change", [lambda x: (x * 2 + 1).sqrt(), lambda x: x[:, :2].sum(1), lambda x: x.log()]
)
def test_nan_that_went_through_arithmetic(facts_of, change):
    x = torch.rand(20, 3) + 0.5
    x[13, 1] = float("nan")
    for features, _ in DataLoader(TensorDataset(x, torch.zeros(20)), batch_size=5):
        p = change(features)
        if bool(p.isnan().any()):
            args = {"self": p, "target": torch.full_like(p, 0.5), "weight": None, "reduction": 1}
            facts = facts_of(make_violation("binary_cross_entropy.self", p, 0, 1, args, bad=p.isnan()))
            break
    by_rows = p.dim() == 1
    assert of(facts, "batch", "row", "dataset_index") == (2, 3, 13)
    assert of(facts, "by", "likely") == (("rows", True) if by_rows else ("nan", None))


def test_nan_everywhere_is_nobodys(facts_of):
    for (x,) in DataLoader(TensorDataset(torch.rand(20, 3)), batch_size=5):
        p = x * float("nan")
        args = {"self": p, "target": torch.zeros_like(p), "weight": None, "reduction": 1}
        facts = facts_of(make_violation("binary_cross_entropy.self", p, 0, 1, args, bad=p.isnan()))
        break
    assert in_hand(facts) == (0, 5)


@pytest.mark.parametrize("rows", [(13,), (13, 14)])
def test_nan_that_spread_to_everything_came_of_the_one_row_that_has_it(facts_of, rows):
    x = torch.rand(20, 3)
    x[list(rows), 1] = float("nan")
    for (features,) in DataLoader(TensorDataset(x), batch_size=5):
        index = (features / features.mean()).long().reshape(-1)[:7]
        if int(index.min()) < 0:
            facts = facts_of(table_violation(torch.zeros(9, 2), index))
            break
    if len(rows) > 1:
        assert "row" not in facts.get("sample", {})
        return
    assert of(facts, "batch", "row", "dataset_index") == (2, 3, 13)
    assert of(facts, "by", "likely") == ("rows", True)


def test_labels_that_are_bad_in_every_row_are_the_batchs(facts_of):
    ids = ids_of(bad=(0, 0), value=3)
    ids[:, :3] = -1
    for number, (labels,) in enumerate(DataLoader(TensorDataset(ids), batch_size=6)):
        target = torch.hstack((labels[..., 1:], torch.full((6, 1), -1))).reshape(-1)
        if number == 1:
            facts = facts_of(label_violation(torch.zeros(60, 50), target))
            break
    assert facts["sample"]["batch"] == 1 and "row" not in facts["sample"]


def test_an_index_computed_from_the_batch(facts_of):
    ages = torch.tensor([float(v) for v in (31, 42, 18, 55, 67, 24, 39, 48, 73, 29, 61, 35, 20, 44, 99, 52)])
    for (age,) in DataLoader(TensorDataset(ages), batch_size=8):
        decade = (age / 10).long()
        if int(decade.max()) > 8:
            facts = facts_of(table_violation(torch.zeros(9, 2), decade))
            break
    assert of(facts, "batch", "row", "dataset_index") == (1, 6, 14)
    assert of(facts, "by", "likely") == ("function", None)


def test_an_index_that_only_has_the_batchs_shape(facts_of):
    for (age,) in DataLoader(TensorDataset(torch.arange(16.0)), batch_size=8):
        order = torch.tensor([3, 1, 8, 0, 5, 2, 7, 4])
        facts = facts_of(table_violation(torch.zeros(8, 2), order))
        del age
        break
    assert in_hand(facts) == (0, 8)


def test_a_text_that_generation_made_longer_has_no_sample(facts_of):
    for batch in DataLoader(Texts(), batch_size=4, collate_fn=pad, sampler=[0, 1, 2, 4]):
        prompt = batch["input_ids"]
        grown = torch.cat([prompt, torch.ones(4, 20, dtype=torch.long)], 1)
        facts, _ = position_facts(facts_of, grown)
        break
    assert facts["table"] == "position" and "sample" not in facts


def test_a_label_that_the_collate_function_made_of_a_word(facts_of):
    """No sample has the number of the class; one has the same number elsewhere: no proof."""
    data = [{"name": name, "width": 5 if name == "ant" else 2} for name in ("cat", "dog", "cow", "ant")]

    def collate(samples):
        return torch.tensor([[["cow", "dog", "ant", "cat"].index(s["name"]) + 2 for s in samples]] * 3)

    for y in DataLoader(data, batch_size=4, collate_fn=collate):
        facts = facts_of(label_violation(torch.zeros(12, 5), y.view(-1)))
        break
    assert facts["sample"].get("likely") is True or "dataset_index" not in facts["sample"]


def test_positions_that_index_another_buffer(facts_of):
    """RoBERTa gathers its token types by position first: the table of positions is not asked any more."""
    for batch in DataLoader(Texts(), batch_size=4, collate_fn=pad):
        keep = batch["attention_mask"]
        positions = (keep.cumsum(1) + 1) * keep + 1 * (1 - keep)
        args = {"self": torch.zeros(4, 16), "dim": 1, "index": positions}
        if int(positions.max()) > 15:
            facts = facts_of(make_violation("gather.index", positions, 0, 16, args))
            break
    assert of(facts, "batch", "dataset_index", "by") == (0, 3, "length")


@pytest.mark.parametrize("repeat", ["repeat", "repeat_interleave"])
def test_a_batch_tensor_that_was_repeated(facts_of, repeat):
    """As attributions do it, once for each step of a path."""
    targets = torch.tensor([1, 4, 2, 3, 5, 1, 9, 2, 4, 3, 1, 5])
    for (y,) in DataLoader(TensorDataset(targets), batch_size=6):
        index = getattr(y, repeat)(8).view(-1, 1)
        facts = facts_of(one_hot_violation(index)) if int(y.max()) == 9 else None
    assert of(facts, "batch", "row", "dataset_index", "likely") == (1, 0, 6, None)


def _computed(ids):
    """An index that no element of the batch is equal to, nor has a row of."""
    return (ids.sum(0) * 3 % 50).repeat(3)[:-1]


def _gathered(index):
    args = {"self": torch.zeros(50), "dim": 0, "index": index}
    return make_violation("gather.index", index, 0, 50, args)


def _step(facts_of, ids, index):
    return facts_of(_gathered(index))


@pytest.mark.parametrize(("bad_at", "wanted"), [(2, [12, 13, 14, 15, 16, 17]), (0, None)])
def test_where_no_row_is_known_the_batch_is_named(facts_of, bad_at, wanted):
    for number, (ids,) in enumerate(DataLoader(TensorDataset(ids_of()), batch_size=6)):
        index = _computed(ids)
        if number == bad_at:
            index[4] = 77
            facts = _step(facts_of, ids, index)
            break
    if wanted is None:  # nothing went before it: nothing says that this batch is special
        assert "sample" not in facts
    else:
        assert of(facts, "batch", "one_of", "row", "likely") == (bad_at, wanted, None, True)


def test_no_batch_is_named_where_everything_is_wrong(facts_of):
    for number, (ids,) in enumerate(DataLoader(TensorDataset(ids_of()), batch_size=6)):
        index = _computed(ids) + 1000
        if number == 2:
            facts = _step(facts_of, ids, index)
            break
    assert "sample" not in facts


def test_a_batch_that_no_function_was_given_is_not_named(facts_of):
    for number, (ids,) in enumerate(DataLoader(TensorDataset(ids_of()), batch_size=6)):
        index = _computed(ids)
        if number == 2:
            index[4] = 77
            facts = facts_of(_gathered(index))
            break
    assert "sample" not in facts


def test_a_number_that_the_program_put_in_place_of_the_samples(facts_of):
    labels = torch.tensor([0, 3, 1, 2, 4, 0, 1, 3, 2, 4, 0, 1])
    for (y,) in DataLoader(TensorDataset(labels), batch_size=12):
        drop = torch.zeros(12, dtype=torch.bool)
        drop[9] = True
        facts = facts_of(table_violation(torch.zeros(5, 2), torch.where(drop, 5, y)))
    assert of(facts, "row", "dataset_index", "by", "likely") == (9, 9, "replaced", None)


def test_another_number_in_most_places_tells_no_sample(facts_of):
    labels = torch.tensor([0, 3, 1, 2, 4, 0, 1, 3, 2, 4, 0, 1])
    for (y,) in DataLoader(TensorDataset(labels), batch_size=12):
        cond = torch.where(torch.arange(12) < 9, 5, y)
        facts = facts_of(table_violation(torch.zeros(5, 2), cond))
    assert "dataset_index" not in (facts.get("sample") or {})


def test_columns_with_an_offset_each(facts_of):
    fields = torch.tensor([[3, 1, 2], [0, 4, 1], [2, 2, 0], [5, 0, 2], [1, 3, 9], [4, 1, 1]])
    for (x,) in DataLoader(TensorDataset(fields), batch_size=6):
        facts = facts_of(table_violation(torch.zeros(18, 2), x + torch.tensor([0, 6, 11])))
    assert of(facts, "row", "dataset_index", "by", "likely") == (4, 4, "function", True)


def test_places_that_count_up_are_no_samples(facts_of):
    def enqueue(x, queue):
        slots = 18 + torch.arange(6)
        arguments = {"self": queue, "dim": 0, "index": slots}
        return facts_of(make_violation("index_copy.index", slots, 0, 20, arguments))

    for (x,) in DataLoader(TensorDataset(torch.randn(24, 3)), batch_size=6):
        facts = enqueue(x, torch.zeros(20, 3))
    assert "sample" not in facts


def _proposals(facts_of, images, targets):
    """As a detector has it: the labels of the images among those of what it proposes for them."""
    background = torch.zeros(5, dtype=torch.long)
    target = torch.cat([part for label in targets for part in (background, label["labels"])])
    del images, targets
    return facts_of(label_violation(torch.zeros(len(target), 9), target))


@pytest.mark.parametrize(
    ("twice", "wanted"), [(False, (1, 2, 6, "value", True)), (True, (1, None, None, None, True))]
)
def test_a_label_among_those_of_proposals(facts_of, twice, wanted):
    def collate(samples):
        images, boxes = zip(*samples)
        return list(images), [{"boxes": b[:, 1:], "labels": b[:, 0].long()} for b in boxes]

    def model(*args):
        return _proposals(facts_of, *args)

    facts = None
    for images, targets in DataLoader(Boxes(), batch_size=4, collate_fn=collate):
        if any(int(target["labels"].max()) == 9 for target in targets):
            if twice:
                targets[0]["labels"][0] = 9
            facts = model(list(images), [dict(target) for target in targets])
            break
    assert of(facts, "batch", "row", "dataset_index", "by", "likely") == wanted
