"""DataLoader batch, row and data set index; range over the data set."""

import random

import pytest
from conftest import label_violation, table_violation

torch = pytest.importorskip("torch")
import trapline._fault as fault  # noqa: E402
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
)
from trapline._fault import content  # noqa: E402

BAD_SAMPLES = (13, 29)


@pytest.fixture(autouse=True)
def installed():
    fault.install()
    yield
    fault.uninstall()


def labels(count=40, bad=9):
    y = torch.arange(count) % 9
    y[list(BAD_SAMPLES)] = bad
    return y


class Items(Dataset):
    """Labels that only __getitem__ gives."""

    def __init__(self):
        self._hidden = {i: int(v) for i, v in enumerate(labels())}

    def __len__(self):
        return 40

    def __getitem__(self, i):
        return {"x": torch.full((3,), float(i)), "y": self._hidden[i]}


def place(facts):
    """Where the sample is; the names are other tests' matter."""
    return {
        name: facts["sample"][name] for name in ("batch", "row", "dataset_index") if name in facts["sample"]
    }


def first_violation(loader, pick, classes=9):
    """The violation of the first bad batch, and what is true about it: (violation, number, row)."""
    for number, batch in enumerate(loader):
        y = pick(batch)
        if bool((y >= classes).any()):
            row = int((y >= classes).nonzero()[0][0])
            return label_violation(torch.zeros(len(y), classes), y), number, row, batch
    raise AssertionError("no bad batch")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("order", ["in order", "shuffled", "sampler", "batch sampler"])
def test_map_style(facts_of, workers, order):
    torch.manual_seed(1)
    data = TensorDataset(torch.arange(40.0), labels())
    options = {
        "in order": {"batch_size": 8},
        "shuffled": {"batch_size": 8, "shuffle": True, "drop_last": True},
        "sampler": {"batch_size": 6, "sampler": list(range(39, -1, -1))},
        "batch sampler": {"batch_sampler": BatchSampler(list(range(39, -1, -1)), 7, False)},
    }[order]
    violation, number, row, batch = first_violation(
        DataLoader(data, num_workers=workers, **options), lambda b: b[1]
    )
    facts = facts_of(violation)
    assert place(facts) == {"batch": number, "row": row, "dataset_index": int(batch[0][row])}
    assert facts["sample"]["dataset_index"] in BAD_SAMPLES
    assert "seen" in facts


def test_persistent_workers_second_epoch(facts_of):
    loader = DataLoader(
        Items(), batch_size=5, num_workers=2, persistent_workers=True, prefetch_factor=3, shuffle=True
    )
    for batch in loader:
        pass
    violation, number, row, batch = first_violation(loader, lambda b: b["y"])
    index = int(batch["x"][row][0])
    assert place(facts_of(violation)) == {"batch": number, "row": row, "dataset_index": index}


def test_workers_out_of_order(facts_of):
    try:
        loader = DataLoader(Items(), batch_size=4, num_workers=2, in_order=False, shuffle=True)
    except TypeError:
        pytest.skip("torch without in_order")
    violation, number, row, batch = first_violation(loader, lambda b: b["y"])
    index = int(batch["x"][row][0])
    assert place(facts_of(violation)) == {"batch": number, "row": row, "dataset_index": index}


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.clone(), lambda y: y.view(-1), lambda y: y.to(torch.int32).long(),
        lambda y: y - 1 + 1 + 0,
        lambda y: y.float().long(), lambda y: y + 3, lambda y: y.masked_fill(y == 2, -100),
    ],
)  # fmt: skip
def test_values_that_the_program_changed(facts_of, change):
    data = TensorDataset(torch.arange(40.0), labels(bad=20))
    for _x, y in DataLoader(data, batch_size=8):
        y = change(y)
        if int(y.max()) > 15:
            facts = facts_of(label_violation(torch.zeros(8, 15), y))
            break
    assert place(facts) == {"batch": 1, "row": 5, "dataset_index": 13}
    added = int(y[5]) - 20
    assert facts["seen"].pop("kinds") == 10
    assert facts["seen"].pop("gap") == (0 if added else 9)
    assert facts["seen"] == {"min": added, "max": 20 + added, "count": 40, "source": "dataset", "beyond": 2}


@pytest.mark.parametrize("flatten", [False, True])
@pytest.mark.parametrize("start", [0, 1])
def test_a_slice_of_token_ids(facts_of, start, flatten):
    ids = torch.arange(30 * 6).view(30, 6) % 50
    ids[17, 3] = 77
    (loader) = DataLoader(TensorDataset(ids), batch_size=4)
    table = torch.zeros(50, 2)
    for (batch,) in loader:
        part = batch[:, start : start + 5].clone()
        part = part.reshape(-1) if flatten else part
        if int(part.max()) > 49:
            facts = facts_of(table_violation(table, part))
            break
    assert place(facts) == {"batch": 4, "row": 1, "dataset_index": 17}
    assert facts["seen"]["count"] == 150 and facts["seen"]["max"] == 77


def test_a_column_of_a_mixed_tensor(facts_of):
    rows = torch.stack([torch.arange(40) + 1000, labels()], 1)
    for (batch,) in DataLoader(TensorDataset(rows), batch_size=8):
        y = batch[:, 1]
        if int(y.max()) == 9:
            facts = facts_of(label_violation(torch.zeros(8, 9), y))
            break
    assert place(facts) == {"batch": 1, "row": 5, "dataset_index": 13}
    assert facts["seen"] == {"min": 0, "max": 9, "count": 40, "source": "dataset", "beyond": 2, "kinds": 10}


def test_subset_targets_and_hidden_labels(facts_of):
    class Images(Dataset):
        def __init__(self):
            self.targets = labels().tolist()

        def __len__(self):
            return 40

        def __getitem__(self, i):
            return torch.zeros(2), self.targets[i]

    part = Subset(Images(), list(range(10, 40)))
    violation, *_ = first_violation(DataLoader(part, batch_size=5), lambda b: b[1])
    facts = facts_of(violation)
    assert place(facts) == {"batch": 0, "row": 3, "dataset_index": 3}
    seen = {"min": 0, "max": 9, "count": 30, "source": "dataset", "beyond": 2, "kinds": 10, "choice": True}
    assert facts["seen"] == seen
    violation, *_ = first_violation(DataLoader(Items(), batch_size=5), lambda b: b["y"])
    assert facts_of(violation)["seen"] == {
        "min": 1,
        "max": 9,
        "count": 5,
        "source": "calls",
        "here": 5,
        "gap": 0,
    }


def test_a_collate_function_that_sorts(facts_of):
    def collate(samples):
        samples = sorted(samples, key=lambda s: -float(s["x"][0]))
        return torch.stack([s["x"] for s in samples]), torch.tensor([s["y"] for s in samples])

    random.seed(3)
    data = Items()
    loader = DataLoader(data, batch_size=8, collate_fn=collate)
    violation, _number, row, batch = first_violation(loader, lambda b: b[1])
    before = torch.get_rng_state(), random.getstate()
    facts = facts_of(violation)
    assert place(facts) == {"batch": 1, "row": 2, "dataset_index": 13} and int(batch[0][row][0]) == 13
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()


def test_a_value_that_the_collate_function_made_has_no_sample_in_the_data_set(facts_of):
    def collate(samples):
        return torch.tensor([s["y"] for s in samples[:-1]] + [77])

    for y in DataLoader(Items(), batch_size=8, collate_fn=collate):
        facts = facts_of(label_violation(torch.zeros(8, 10), y))
        break
    assert place(facts) == {"batch": 0, "row": 7}


def test_iterable_sets_have_batch_and_row_only(facts_of):
    class Stream(IterableDataset):
        def __iter__(self):
            return iter([(torch.zeros(1), int(v)) for v in labels()])

    violation, *_ = first_violation(DataLoader(Stream(), batch_size=8), lambda b: b[1])
    assert place(facts_of(violation)) == {"batch": 1, "row": 5}


def test_no_batching(facts_of):
    for sample in DataLoader(Items(), batch_size=None):
        if sample["y"] == 9:
            y = torch.as_tensor(sample["y"]).reshape(1)
            break
    facts = facts_of(label_violation(torch.zeros(1, 9), y))
    assert "sample" not in facts  # an int went in, a new tensor came out: nothing links them


def test_other_tensors_get_no_sample(facts_of):
    for _x, _y in DataLoader(TensorDataset(torch.arange(40.0), labels()), batch_size=8):
        pass
    other = torch.tensor([5, 2, 9, 1, 1, 0, 3, 4])
    assert "sample" not in facts_of(label_violation(torch.zeros(8, 9), other))
    twins = TensorDataset(labels(), labels().flip(0))
    for a, b in DataLoader(twins, batch_size=40):
        one = torch.cat([a[:20], b[20:]])
        sample = facts_of(label_violation(torch.zeros(40, 9), one))["sample"]
        assert sample["by"] == "hand" and "row" not in sample and "dataset_index" not in sample


def test_labels_that_went_to_another_device_are_still_known(facts_of):
    for _, y in DataLoader(TensorDataset(torch.arange(40.0), labels()), batch_size=8):
        y = y.clone()  # as .to("cuda") does: the batch's own tensor has no other owner now
        if int(y.max()) == 9:
            break
    assert place(facts_of(label_violation(torch.zeros(8, 9), y))) == {
        "batch": 1,
        "row": 5,
        "dataset_index": 13,
    }


class Faulty(Dataset):
    """Breaks an operation inside __getitem__, as a worker sees it."""

    def __init__(self, collected):
        self.collected = collected

    def __len__(self):
        return 40

    def __getitem__(self, i):
        if i == 13:
            self.collected(table_violation(torch.zeros(5, 2), torch.tensor([i])))
        return i


@pytest.mark.parametrize("workers", [0, 2])
def test_a_fault_inside_the_data_set(tmp_path, workers):
    from trapline._fault import violation as collector

    def collected(violation):
        (tmp_path / "sample").write_text(repr(place(collector.collect(violation, []))))

    for _ in DataLoader(Faulty(collected), batch_size=5, num_workers=workers):
        pass
    assert eval((tmp_path / "sample").read_text()) == {"batch": 2, "row": 3, "dataset_index": 13}


@pytest.mark.parametrize("kind", ["loop", "one after the other", "mixed"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_fault_inside_the_collate_function(tmp_path, workers, kind):
    """The record that its loop is at, or whose numbers stand there; without one, those of the batch."""
    from trapline._fault import violation as collector

    records = [(torch.tensor([at, at + 1]), at % 2) for at in range(10)]

    def breaks(cells):
        if int(cells.max()) == 8:
            told = collector.collect(table_violation(torch.zeros(8, 2), cells), [])["sample"]
            (tmp_path / "sample").write_text(repr(told))

    def collate(samples):
        if kind != "loop":
            cells = torch.cat([samples[0][0], samples[1][0]])
            breaks(cells if kind != "mixed" else cells[[0, 2, 1, 3]])
            return len(samples)
        for _, (cells, _) in enumerate(samples):
            breaks(cells)
        return len(samples)

    for _ in DataLoader(
        records, batch_size=2, sampler=[3, 0, 5, 7, 2, 1], collate_fn=collate, num_workers=workers
    ):
        pass
    told = eval((tmp_path / "sample").read_text())
    assert (told["batch"], told.get("row"), told.get("dataset_index")) == (
        (1, None, None) if kind == "mixed" else (1, 1, 7)
    )
    assert told.get("one_of") == ([5, 7] if kind == "mixed" else None)


def test_install_twice_and_uninstall():
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    wrapped = _BaseDataLoaderIter.__next__
    fault.install()
    assert _BaseDataLoaderIter.__next__ is wrapped
    fault.uninstall()
    assert _BaseDataLoaderIter.__next__ is not wrapped


def test_padding_that_the_collate_function_added_belongs_to_the_padded_sample(facts_of):
    texts = [([i % 7, i % 5, i % 3, 4][: 3 + i % 2], i % 2) for i in range(20)]

    def collate(samples):
        ids = torch.full((len(samples), 4), 7)
        for row, (words, _) in enumerate(samples):
            ids[row, : len(words)] = torch.tensor(words)
        return ids, torch.tensor([label for _, label in samples])

    for ids, _ in DataLoader(texts, batch_size=6, collate_fn=collate, sampler=list(range(19, -1, -1))):
        facts = facts_of(table_violation(torch.zeros(7, 2), ids))
        break
    assert place(facts) == {"batch": 0, "row": 1, "dataset_index": 18}
    assert facts["index"] == [1, 3]


def test_an_index_expanded_from_the_batch(facts_of):
    lengths = torch.arange(30)
    for _x, n in DataLoader(TensorDataset(torch.randn(30, 2), lengths), batch_size=6):
        index = (n - 1 + 1).view(-1, 1, 1).expand(6, 1, 4)
        if int(index.max()) > 22:
            facts = facts_of(table_violation(torch.zeros(22, 1), index))
            break
    assert place(facts) == {"batch": 3, "row": 4, "dataset_index": 22}


def test_a_loss_input_has_the_sample_of_its_target(facts_of):
    from conftest import make_violation

    data = TensorDataset(torch.randn(20, 3), (torch.arange(20) % 2).float())
    for x, y in DataLoader(data, batch_size=5, shuffle=True):
        p = torch.full((5,), 0.5)
        p[3] = float("nan")
        args = {"self": p, "target": y + 0, "weight": None, "reduction": 1}
        facts = facts_of(make_violation("binary_cross_entropy.self", p, 0, 1, args, bad=p.isnan()))
        break
    index = facts["sample"].pop("dataset_index")
    assert place(facts) == {"batch": 0, "row": 3}
    assert torch.equal(data[index][0], x[3])
    assert "seen" not in facts


def test_targets_of_two_kinds_are_not_those_of_a_batch_that_is_done_with(facts_of):
    from conftest import make_violation

    data = TensorDataset(torch.randn(20, 3), torch.zeros(20))

    def targets():
        return torch.cat([y for _, y in DataLoader(data, batch_size=5)])

    p = torch.full((5,), 0.5)
    p[3] = float("nan")
    args = {"self": p, "target": targets()[:5], "weight": None, "reduction": 1}
    facts = facts_of(make_violation("binary_cross_entropy.self", p, 0, 1, args, bad=p.isnan()))
    assert "batch" not in facts.get("sample", {})


def test_the_newest_batch_is_no_ones_where_two_loaders_make_them():
    from trapline._fault.data import hand

    def drawn(*loaders):
        for loader in loaders:
            next(iter(loader))

    one = DataLoader(TensorDataset(torch.arange(8)), batch_size=4)
    drawn(one, one)  # two epochs
    assert hand.newest().number == 0
    drawn(DataLoader(TensorDataset(torch.arange(6)), batch_size=3))
    assert hand.newest() is None and one


def test_a_mask_beside_the_labels_is_no_source_of_them(facts_of):
    class WithMask(Items):
        def __getitem__(self, i):
            return torch.zeros(3), self._hidden[i], torch.arange(50) % 7 == i % 7

    loader = DataLoader(WithMask(), batch_size=8)
    violation, number, row, _ = first_violation(loader, lambda b: b[1])
    assert place(facts_of(violation)) == {"batch": number, "row": row, "dataset_index": BAD_SAMPLES[0]}


def test_where_most_rows_are_bad_no_sample_is_at_fault(facts_of):
    loader = DataLoader(TensorDataset(torch.zeros(40, 2), torch.arange(40) % 4), batch_size=8)
    for _, target in loader:
        facts = facts_of(label_violation(torch.zeros(8, 2), target + 1))  # 2, 3 and 4 of 1 to 4
        told = facts["sample"]
        assert (told["batch"], told["by"], told["one_of"][0]) == (0, "hand", 0)
        assert "row" not in told and "likely" not in told
        assert place(facts_of(label_violation(torch.zeros(8, 3), target))) == {
            "batch": 0,
            "row": 3,
            "dataset_index": 3,
        }
        half = facts_of(label_violation(torch.zeros(8, 2), target))["sample"]  # 2 and 3 of 0 to 3
        assert (half["batch"], half["by"]) == (0, "hand") and "row" not in half
        break


def test_a_row_of_what_the_model_computed(facts_of):
    """Delayed, shifted, looked up: the values are not the batch's, but its rows are."""
    loader = DataLoader(TensorDataset(torch.rand(40, 6)), batch_size=8)
    for number, (codes,) in enumerate(loader):
        if number < 2:
            continue
        made = torch.zeros(8, 9, dtype=torch.int64)
        made[5, 3:] = 77
        facts = facts_of(table_violation(torch.zeros(65, 2), made))
        assert place(facts) == {"batch": 2, "row": 5, "dataset_index": 21}
        assert (facts["sample"]["by"], facts["sample"]["likely"]) == ("row", True)
        made[6, 0] = 77
        assert "row" not in facts_of(table_violation(torch.zeros(65, 2), made)).get("sample", {})
        assert codes.shape == (8, 6)
        break


def test_the_place_in_a_run_of_ids_is_no_row(facts_of):
    class Windows(IterableDataset):
        def __iter__(self):
            return iter(torch.arange(20).reshape(10, 2))

    def flatten(samples):
        return torch.cat(samples)

    for ids in DataLoader(Windows(), batch_size=5, collate_fn=flatten):
        facts = facts_of(table_violation(torch.zeros(8, 2), ids))
        assert place(facts) == {"batch": 0}
        break


def test_what_is_like_a_dict_and_a_proxy_do_no_harm(facts_of):
    class Sparse:  # .values is no method
        def __init__(self):
            self.values, self.keys = torch.ones(3), torch.ones(3)

    class Proxy:  # as of a web framework, outside of a request
        @property
        def __dict__(self):
            raise RuntimeError("working outside of request context")

    kept, proxy = [Sparse() for _ in range(4)], Proxy()
    violation = table_violation(torch.zeros(8, 2), torch.tensor([[1], [2], [9], [3]]))
    assert "sample" not in facts_of(violation) and len(kept) == 4 and proxy is not None


def test_as_many_columns_as_samples_where_the_other_tensors_tell(facts_of):
    """A tensor [8, 8] of a collate function of the program's: the texts beside it have the samples first."""

    class Tagged(Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, i):
            return torch.full((width,), i), [j for j in range(8) if j != i % 8], 9 if i == 13 else 1

    def collate(items):
        ids = torch.stack([item[0] for item in items])
        tags = torch.zeros(len(items), 8, dtype=torch.long)
        for row, (_, named, mark) in enumerate(items):
            tags[row, named] = mark
        return (ids, tags) if wide else (ids.t().contiguous(), tags)

    for wide, width in ((True, 5), (False, 5), (True, 8)):
        for _, (_ids, tags) in zip(range(2), DataLoader(Tagged(), batch_size=8, collate_fn=collate)):
            weight = torch.zeros(3, 2)
            if bool((tags > 2).any()):
                told = facts_of(table_violation(weight, tags))["sample"]
                assert ("row" in told) is wide
                if wide:
                    assert (told["batch"], told["row"], told["dataset_index"]) == (1, 5, 13)


def test_what_the_model_was_given_is_of_the_row():
    """A batch on a device, whose own tensors are gone: what stands out there nobody can see any more."""
    given = {"name": "wav", "index": [1, 0], "value": "nan", "module": "model"}
    assert content._is_rows_input({"nan": {"input": given}, "sample": {"row": 1}})
    assert not content._is_rows_input({"nan": {"input": given}, "sample": {"row": 2}})
    assert not content._is_rows_input({"nan": {"input": given}, "sample": {"one_of": [1, 2]}})
    assert not content._is_rows_input({"sample": {"row": 1}})
