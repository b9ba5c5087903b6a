"""Facts behind the advice: counts, the libraries around a layer, position tables. Nothing is made up."""

import sys
import types

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset
from trapline._fault.data import batches, counts, samples
from trapline._fault.model import models, positions, tables
from trapline._fault.program import libraries, scope


class Numbered(Dataset):
    classes = ["a", "b", "c", "d"]

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor([float(index)]), index % 4

    @property
    def class_to_idx(self):
        raise AssertionError("a property of the user's is not run")


def test_the_data_set_says_how_many_classes():
    batches.install()
    try:
        loader = DataLoader(Subset(Numbered(), [4, 5, 6, 7]), batch_size=4)
        for _, _labels in loader:
            assert counts.classes(None) == {"count": 4, "of": "the number of the data set's classes"}
    finally:
        batches.uninstall()
    assert counts.classes(None) is None


def test_a_hidden_folder_is_no_class():
    class Tree(Numbered):
        classes = [".ipynb_checkpoints", "a", "b"]

        def __init__(self, root):
            self.root = root

    def counted(root):
        batches.install()
        try:
            for _, _labels in DataLoader(Tree(root), batch_size=4):
                return counts.classes(None)
        finally:
            batches.uninstall()

    of = "the number of the data set's classes"
    assert counted("pictures") == {"count": 2, "of": of, "hidden": ".ipynb_checkpoints"}
    assert counted(None) == {"count": 3, "of": of}, "no tree of folders"


def test_a_vocabulary_is_a_count_and_two_are_none():
    stoi = {"a": 0, "b": 1, "c": 2}
    assert counts.tokens(torch.tensor([0, 3]), 3) == {"count": 3, "of": "len(stoi)"}
    vocab = {"a": 0, "b": 1}
    assert counts.tokens(torch.tensor([0, 3]), 3) is None, (stoi, vocab)


def made_by_library(monkeypatch, name="somelib"):
    """A class whose module lies where installed packages do."""
    module = types.ModuleType(f"{name}.nets")
    module.__file__ = f"/opt/lib/site-packages/{name}/nets.py"
    monkeypatch.setitem(sys.modules, module.__name__, module)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Sequential(nn.Linear(2, 3))

    Net.__module__, Net.__qualname__ = module.__name__, "Net"
    return Net


def test_the_library_that_made_the_head(monkeypatch):
    net = made_by_library(monkeypatch)()
    facts = libraries.library_facts({"name": "head.0"})
    assert (facts["owner"], facts["maker"], facts["owners"]) == ("somelib", "Net", ["somelib.nets.Net"])
    assert "caller" not in facts, net


def test_the_setting_that_a_table_of_a_library_has_its_rows_by(monkeypatch):
    base = made_by_library(monkeypatch)

    class Settings:
        def __init__(self, **given):
            self.__dict__.update(given)

    class Kept(base):
        def __init__(self, max_z, n_basis, config):
            super().__init__()
            self.max_z, self.n_basis, self.config = max_z, n_basis, config
            self.table = table_of(max_z, n_basis)

    def table_of(rows, width):
        return nn.Embedding(rows, width)

    Kept.__module__ = base.__module__

    def setting(rows, **settings):
        net = Kept(rows, 40, Settings(**settings))
        facts = libraries.library_facts({"name": "table", "value": rows})
        assert net.n_basis == 40
        return facts.get("setting")

    assert setting(40) == "max_z"  # and not n_basis, a width
    assert setting(12, padded_vocab_size=13, eos_token_id=12) == "max_z"
    assert setting(12, num_classes=12) is None  # one of the two, and nothing tells which


def test_the_source_says_which_setting_made_a_table(tmp_path, monkeypatch):
    site = tmp_path / "site-packages" / "maker"
    site.mkdir(parents=True)
    (site / "__init__.py").write_text(
        "from torch import nn\n"
        "class Model(nn.Module):\n"
        "    def __init__(self, config, num_tokens, width):\n"
        "        super().__init__()\n"
        "        self.config = config\n"
        "        width = 2 * width\n"
        "        self.embed_timestep = nn.Embedding(config.max_ep_len, width)\n"
        "        self.words = nn.Embedding(num_tokens, width)\n"
        "        self.head = nn.Linear(width, out_features=num_tokens)\n"
        "        self.other = nn.Linear(width, width)\n"
    )
    monkeypatch.syspath_prepend(str(site.parent))
    maker = __import__("maker")
    settings = types.SimpleNamespace(max_ep_len=64, n_positions=64, vocab_size=64)
    model = maker.Model(settings, 64, 32)
    found = {
        name: libraries.library_facts({"name": name, "value": 64}).get("setting")
        for name in ("embed_timestep", "words", "head", "other")
    }
    assert found["embed_timestep"] == "max_ep_len", model
    assert found["words"] == found["head"] == "num_tokens"
    assert found["other"] is None  # no setting, although vocab_size is as large
    table = dict(model.named_modules())["embed_timestep"]
    assert positions._made_by(model, "embed_timestep", 64) == ("max_ep_len", 64)
    assert positions._made_by(model, "words", 64) is None, table


def test_the_virtual_tokens_of_a_prompt_tuner():
    root = nn.Module()
    root.__dict__["_peft_config"] = {"default": types.SimpleNamespace(num_virtual_tokens=8)}
    assert models.virtual_tokens() == 8, root


def test_of_two_tables_as_large_the_one_that_was_asked():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.wpe = nn.Embedding(64, 2)
            self.embed_timestep = nn.Embedding(64, 2)
            self.config = types.SimpleNamespace(n_positions=64)

        def forward(self, weight):
            return positions.position_facts([sys._getframe()], 64, weight)

    model = Model()
    assert model(None)["name"] == model(model.wpe.weight)["name"] == "wpe"
    assert model(model.embed_timestep.weight)["name"] == "embed_timestep"


def test_a_head_of_the_users_own(monkeypatch):
    base = made_by_library(monkeypatch)

    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = base()
            self.fc = nn.Linear(2, 3)

    model = Mine()
    assert libraries.library_facts({"name": "fc"}) == {}
    assert libraries.library_facts({"name": "body.head.0"})["maker"] == "Net", model


class Config:
    def __init__(self):
        self.max_position_embeddings = 64


class Embeddings(nn.Module):
    def __init__(self, rows=64, padding_idx=None):
        super().__init__()
        self.config = Config()
        self.position_embeddings = nn.Embedding(rows, 4, padding_idx=padding_idx)

    def forward(self, input_ids, rows=None):
        return positions.position_facts(scope.live_frames(), rows)


def test_the_text_is_longer_than_the_table():
    facts = Embeddings()(torch.zeros(8, 80, dtype=torch.long))
    assert facts == {
        "rows": 64,
        "offset": 0,
        "name": "position_embeddings",
        "length": 80,
        "setting": "max_position_embeddings",
        "value": 64,
    }
    assert Embeddings()(torch.zeros(8, 64, dtype=torch.long)) is None


def test_rows_before_the_first_position():
    facts = Embeddings(padding_idx=1)(torch.zeros(8, 63, dtype=torch.long))
    assert (facts["rows"], facts["offset"], facts["value"]) == (64, 2, 64)
    facts = Embeddings(rows=66)(torch.zeros(8, 65, dtype=torch.long))
    assert (facts["rows"], facts["offset"], facts["value"]) == (66, 2, 64)


def test_a_sample_is_not_made_up():
    assert samples is not None
    assert positions.longest_sample([], 64) is None


class Segmented(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config()
        self.config.type_vocab_size = 2
        self.config.pad_token_id = 2
        self.words, self.token_type_embeddings = nn.Embedding(9, 4), nn.Embedding(2, 4)

    def resize_token_embeddings(self, size):
        raise AssertionError("is not to be called")

    def get_input_embeddings(self):
        return self.words


def test_the_table_of_segments_is_not_the_table_of_words():
    model = Segmented()
    table = model.token_type_embeddings.weight
    assert (models.role(table), models.role(model.words.weight)) == ("other", "input")
    assert tables.table_kind("token_type_embeddings", torch.tensor([0, 2, 0]), "other") == "other"
    assert models.table_setting(table, "token_type_embeddings") == {"name": "type_vocab_size", "value": 2}


def test_keys_of_fewer_tokens_than_the_position():
    past = [(torch.zeros(1, 4, 41, 12), torch.zeros(1, 4, 41, 12)) for _ in range(2)]
    one = torch.tensor([64])
    kept = positions.kept(one, 64)
    assert kept is not None and (kept["name"], kept["tokens"]) == ("past", 41)
    assert positions.kept(one, 41) is None, "as many as the position says"
    assert positions.kept(torch.tensor([[63, 64]]), 64) is None, "of several the cache has none yet"
    cache = type("Cache", (), {})()
    cache.keys, cache.values, cache.count = [part for part, _ in past], [part for _, part in past], 82
    del past
    kept = positions.kept(one, 64)
    assert kept is not None and (kept["name"], kept["tokens"]) == ("cache", 41)
    past = [(part, part) for part in cache.keys]
    del cache
    past.append((torch.zeros(1, 4, 40, 12), torch.zeros(1, 4, 41, 12)))
    assert positions.kept(one, 64) is None, "no cache: its parts are not alike"


def test_where_positions_begin():
    assert positions.counts_from(torch.tensor([[0, 1, 2, 0, 1, 2, 3]]), 6) == 0
    assert positions.counts_from(torch.tensor([[100, 101, 102]]), 0) == 100
    assert positions.counts_from(torch.tensor([[64]]), 0) is None, "one alone tells nothing"


class Vocabulary(nn.Module):
    """As a Hugging Face model with a decoder that has a table of its own."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(12, 4)
        self.decoder = nn.Embedding(8, 4)

    def get_input_embeddings(self):
        return self.encoder

    def resize_token_embeddings(self, rows):
        raise AssertionError("never called")


def test_only_the_table_that_a_resize_reaches():
    model = Vocabulary()
    assert models.resizable(model.encoder.weight) == "model"
    assert models.resizable(model.decoder.weight) is None


def test_the_method_that_called_is_named(monkeypatch):
    net = made_by_library(monkeypatch)

    def look(self):
        return list(libraries._callers([sys._getframe()]))

    net.look = look
    names = type("Child", (net,), {})().look()
    assert names[0] == "somelib.nets.Net.look"
    assert "somelib.nets.Net" in names


def test_samples_in_order_are_no_positions():
    assert tables.table_kind("month", torch.tensor([7, 8, 9, 10, 11, 12])) is None
    assert tables.table_kind("table", torch.arange(12)) == "position"
    assert tables.table_kind("table", torch.tensor([[7, 8, 9], [4, 5, 6]])) == "position"
    assert tables.table_kind("pos", torch.tensor([7, 8, 9])) == "position"
    tags = torch.tensor([[3, 1, 1, 9, 4], [2, 15, 3, 0, 0]])
    assert tables.table_kind("embed_postag", tags) is None
    assert tables.table_kind("pos_emb", tags) == "other", "parts of speech do not count upwards"
    assert tables.table_kind("position_embeddings", tags) == "position"
    assert tables.table_kind("pos_emb", torch.tensor([[0, 1, 2, 3, 0, 0]])) == "position", "padded"
    assert tables.table_kind("pos_emb", torch.tensor([[7], [3]])) == "position", "one at a time"


def test_the_part_that_the_program_creates_itself(monkeypatch):
    """`MPNN(predictor=FFN(n_classes=3))`: the layer is made by what the program's text calls."""
    base = made_by_library(monkeypatch)

    class Whole(base):
        def __init__(self, part):
            super().__init__()
            self.predictor = part

    Whole.__module__ = base.__module__
    model = Whole(base())
    called = {"Whole"}
    monkeypatch.setattr(libraries.texts, "calls_of", lambda name: iter([name] if name in called else []))
    assert libraries.library_facts({"name": "predictor.head.0"})["maker"] == "Whole"
    called.add("Net")
    assert libraries.library_facts({"name": "predictor.head.0"})["maker"] == "Net", model
