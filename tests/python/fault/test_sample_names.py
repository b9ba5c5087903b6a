"""The sample in terms of the program: names of data set and loader, the base below, the file."""

import pytest
from conftest import label_violation

torch = pytest.importorskip("torch")
import trapline._fault as fault  # noqa: E402
from torch.utils.data import (  # noqa: E402
    ConcatDataset,
    DataLoader,
    Dataset,
    Subset,
    TensorDataset,
    random_split,
)


@pytest.fixture(autouse=True)
def installed():
    fault.install()
    yield
    fault.uninstall()


class Masks(Dataset):
    """Twelve pictures; the mask of s07 is bad."""

    def __init__(self):
        self.paths = [f"data/imgs/s{i:02}.png" for i in range(12)]

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.zeros(3), torch.tensor(9 if i == 7 else i % 4)


def run(loader, facts_of):
    """The facts of the first bad batch, as a function of the user's that knows the loader as `batches`."""
    for _, y in loader:
        if int(y.max()) > 3:
            return facts_of(label_violation(torch.zeros(len(y), 4), y))
    return None


def test_random_split_is_followed_to_the_picture(facts_of):
    dataset = Masks()
    parts = random_split(dataset, [8, 4], generator=torch.Generator().manual_seed(0))
    train_set, val_set = parts
    val_loader = DataLoader(val_set, batch_size=3)
    assert run(val_loader, facts_of) is None
    train_loader = DataLoader(train_set, batch_size=3)
    sample = run(train_loader, facts_of)["sample"]
    index = list(train_set.indices).index(7)
    assert sample == {
        "batch": index // 3,
        "row": index % 3,
        "dataset_index": index,
        "loader": "train_loader",
        "dataset": {"name": "train_set", "type": "Subset", "length": 8},
        "base_index": 7,
        "base": {"name": "dataset", "type": "Masks", "length": 12},
        "file": "data/imgs/s07.png",
    }


def test_the_validation_loader_is_named_by_its_own_name(facts_of):
    """Lightning-like: a fit function that is handed both, data sets held by a module."""

    class DataModule:
        def __init__(self):
            whole = Masks()
            self.train_set = Subset(whole, [0, 1, 2, 3])
            self.val_set = Subset(whole, [9, 8, 7])

    def fit(data, train, validate):
        assert run(train, facts_of) is None
        return run(validate, facts_of)

    data = DataModule()
    train_loader, val_loader = (DataLoader(part, batch_size=2) for part in (data.train_set, data.val_set))
    sample = fit(data, train_loader, val_loader)["sample"]
    assert sample["loader"] == "val_loader"
    assert sample["dataset"] == {"name": "data.val_set", "type": "Subset", "length": 3}
    assert (sample["dataset_index"], sample["base_index"]) == (2, 7)
    assert (sample["batch"], sample["row"]) == (1, 0)
    assert sample["base"] == {"type": "Masks", "length": 12}


def test_loaders_in_a_dictionary(facts_of):
    loaders = {name: DataLoader(Masks(), batch_size=4) for name in ("train", "val")}
    sample = run(loaders["val"], facts_of)["sample"]
    assert sample["loader"] == "loaders['val']" and sample["dataset"] == {"type": "Masks", "length": 12}
    assert "base" not in sample and sample["file"] == "data/imgs/s07.png"


def test_subsets_of_concatenated_sets(facts_of):
    small = TensorDataset(torch.zeros(5, 3), torch.zeros(5, dtype=torch.long))
    images = Masks()
    both = ConcatDataset([small, images])
    part = Subset(Subset(both, list(range(4, 17))), list(range(12, -1, -1)))
    sample = run(DataLoader(part, batch_size=4), facts_of)["sample"]
    assert part[sample["dataset_index"]][1] == 9
    assert sample["base_index"] == 7 and sample["base"]["name"] == "images"
    assert sample["dataset"]["name"] == "part"


def test_an_object_without_a_name_is_described(facts_of):
    sample = run(DataLoader(Subset(Masks(), range(2, 12)), batch_size=5), facts_of)["sample"]
    # `loader` is a variable of the test's own helper: it has the name there
    assert sample["loader"] == "loader" and sample["dataset"] == {"type": "Subset", "length": 10}


@pytest.mark.parametrize(
    ("names", "entries", "file"),
    [
        ("imgs", [(f"a/{i}.png", 0) for i in range(12)], "a/7.png"),
        ("samples", [f"a text, number {i}" for i in range(12)], None),
        ("samples", [("words. more", 1)] * 12, None),
        ("files", ["only one"], None),
        ("file_names", [f"{i}" for i in range(12)], "7"),
    ],
)
def test_a_file_is_named_only_where_the_list_is_one_of_files(facts_of, names, entries, file):
    data = Masks()
    del data.paths
    setattr(data, names, entries)
    sample = run(DataLoader(data, batch_size=4), facts_of)["sample"]
    assert sample.get("file") == file


def test_a_batch_that_carries_paths_and_keys(facts_of):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            for i in range(12):
                yield {"__key__": f"shard-{i}", "path": f"{i}.jpg", "y": torch.tensor(9 if i == 7 else i % 4)}

    for batch in DataLoader(Stream(), batch_size=5):
        y = batch["y"]
        if int(y.max()) > 3:
            sample = facts_of(label_violation(torch.zeros(5, 4), y))["sample"]
            break
    assert (sample["batch"], sample["row"], sample["key"], sample["file"]) == (1, 2, "shard-7", "7.jpg")
    assert "dataset_index" not in sample and "one_of" not in sample


def test_the_hub_data_set_that_a_trainer_copied(facts_of):
    datasets = pytest.importorskip("datasets")
    raw = datasets.Dataset.from_dict(
        {"label": [i % 4 if i != 7 else 9 for i in range(12)], "text": ["t"] * 12}
    )
    other = datasets.Dataset.from_dict({"label": [0] * 12})
    train_set = raw.shuffle(seed=2)
    assert len(other) == len(train_set)
    handed = train_set.remove_columns(["text"]).with_format("torch")
    batches = ((0, b["label"]) for b in DataLoader(handed, batch_size=4))
    del handed
    sample = run(batches, facts_of)["sample"]
    assert sample["dataset"] == {"name": "train_set", "type": "Dataset", "length": 12}
    assert train_set[sample["dataset_index"]]["label"] == 9
    assert sample["base_index"] == 7 and sample["base"]["name"] == "raw"


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_that_gives_torch_a_stand_in_as_fastais_does(facts_of, shuffle):
    import multiprocessing

    from torch.utils.data.dataloader import _DatasetKind, _SingleProcessDataLoaderIter

    class StandIn:  # fastai.data.load._FakeLoader
        _IterableDataset_len_called, _auto_collation, drop_last, in_order = None, False, False, True
        generator, prefetch_factor, pin_memory, num_workers, timeout = None, None, False, 0, 0
        persistent_workers, pin_memory_device, worker_init_fn = False, "", None
        dataset_kind = _dataset_kind = _DatasetKind.Iterable
        multiprocessing_context = multiprocessing
        _index_sampler = range(1 << 30)

        def __init__(self, d):
            self.dataset, self.d = self, d

        def collate_fn(self, x):
            return x

        def _get_shared_seed(self):
            return 0

        def __iter__(self):
            return self.d.batches()

    class DataLoader:
        def __init__(self, dataset, bs):
            self.dataset, self.bs, self.fake_l = dataset, bs, StandIn(self)

        def __iter__(self):
            self.__idxs = [int(i) for i in torch.randperm(12)] if shuffle else list(range(12))
            yield from _SingleProcessDataLoaderIter(self.fake_l)

        def batches(self):
            for at in range(0, 12, self.bs):
                chosen = [self.dataset[i] for i in self.__idxs[at : at + self.bs]]
                yield torch.stack([x for x, _ in chosen]), torch.stack([y for _, y in chosen])

    items = Masks()
    train_dl = DataLoader(items, bs=5)
    sample = run(train_dl, facts_of)["sample"]
    assert (sample["dataset_index"], sample["loader"], sample["file"]) == (7, "train_dl", "data/imgs/s07.png")
    assert sample["dataset"] == {"name": "items", "type": "Masks", "length": 12}
    assert shuffle or (sample["batch"], sample["row"]) == (1, 2)
