"""The layer that owns a table or produced the logits."""

import pytest
from conftest import label_violation, make_violation, table_violation

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

F = nn.functional
BAD = torch.tensor([0, 5, 1])


class Classifier(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.body = nn.Linear(7, classes)  # as wide as the head: only the graph can tell them apart
        self.fc = nn.Sequential(
            nn.Linear(classes, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, classes)
        )

    def forward(self, x):
        return self.fc(self.body(x))


def certain(name, kind, attribute, value, arguments=None):
    layer = {"name": name, "type": kind, "attribute": attribute, "value": value, "certain": True}
    return layer if arguments is None else {**layer, "arguments": arguments}


def test_logits_of_a_sequential(facts_of):
    model = Classifier()
    violation = label_violation(model(torch.zeros(3, 7)), BAD)
    assert facts_of(violation)["layer"] == certain(
        "fc.4", "Linear", "out_features", 5, "in_features=8, out_features=5"
    )


def test_logits_through_arithmetic_casts_views_and_a_norm(facts_of):
    model = nn.ModuleDict({"head": nn.Linear(7, 5), "norm": nn.BatchNorm1d(5)})
    hidden = model["norm"](model["head"](torch.randn(3, 7))).double() * 2 - 1
    violation = label_violation((hidden / 0.7).view(3, 5).clone(), BAD)
    assert facts_of(violation)["layer"] == certain(
        "head", "Linear", "out_features", 5, "in_features=7, out_features=5"
    )


def test_a_sequence_model_without_bias(facts_of):
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 5, bias=False))
    violation = label_violation(model(torch.zeros(1, 3, dtype=torch.long)).view(-1, 5), BAD)
    assert facts_of(violation)["layer"] == certain(
        "model[1]", "Linear", "out_features", 5, "in_features=4, out_features=5"
    )


def test_a_segmentation_head(facts_of):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Conv2d(3, 5, 3, padding=1)
            self.head = nn.Conv2d(5, 5, 1)

        def forward(self, x):
            return F.interpolate(self.head(self.encoder(x)), scale_factor=2)

    net = Net()
    target = torch.zeros(1, 8, 8, dtype=torch.long)
    target[0, 2, 3] = 5
    violation = label_violation(net(torch.zeros(1, 3, 4, 4)), target)
    facts = facts_of(violation)
    assert facts["layer"] == certain("head", "Conv2d", "out_channels", 5)
    assert facts["index"] == [0, 2, 3]


def test_autocast(facts_of):
    model = Classifier()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(torch.zeros(3, 7))
    assert facts_of(label_violation(out.float(), BAD))["layer"]["name"] == "fc.4"


def test_wrappers_are_not_part_of_the_name(facts_of):
    model = nn.DataParallel(Classifier())
    assert facts_of(label_violation(model.module(torch.zeros(3, 7)), BAD))["layer"]["name"] == "fc.4"


def test_a_bare_module_takes_its_variables_name(facts_of):
    head = nn.Linear(7, 5)
    assert facts_of(label_violation(head(torch.zeros(3, 7)), BAD))["layer"]["name"] == "head"


def test_a_module_out_of_sight_is_found_on_the_heap(facts_of):
    class Trainer:
        def __init__(self):
            self.model = Classifier()

    trainer = Trainer()
    violation = label_violation(trainer.model(torch.zeros(3, 7)), BAD)
    assert facts_of(violation)["layer"]["name"] == "fc.4"


def test_without_a_graph_the_only_layer_of_that_width_is_a_guess(facts_of):
    model = nn.Sequential(nn.Linear(7, 6), nn.Linear(6, 5))
    with torch.no_grad():
        layer = facts_of(label_violation(model(torch.zeros(3, 7)), BAD))["layer"]
    assert layer == {
        **certain("model[1]", "Linear", "out_features", 5, "in_features=6, out_features=5"),
        "certain": False,
    }
    twice = Classifier()
    with torch.inference_mode():
        assert "layer" not in facts_of(label_violation(twice(torch.zeros(3, 7)), BAD)) or model is None


def test_logits_that_no_layer_has_the_width_of(facts_of):
    left, right = nn.Linear(7, 2), nn.Linear(7, 3)
    lower = nn.Linear(7, 7)
    decoy = nn.Linear(7, 5)
    hidden = lower(decoy(torch.zeros(3, 7)).sum(1, keepdim=True).expand(3, 7))
    violation = label_violation(torch.cat([left(hidden), right(hidden)], 1), BAD)
    assert "layer" not in facts_of(violation)


def test_two_heads_added_are_not_certain(facts_of):
    pair = nn.ModuleList([nn.Linear(7, 5), nn.Linear(7, 5)])
    x = torch.zeros(3, 7)
    layer = facts_of(label_violation(pair[0](x) + pair[1](x), BAD))["layer"]
    assert layer["certain"] is False and layer["name"] in ("pair[0]", "pair[1]")


def test_an_embedding_table_and_its_tied_head(facts_of):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lm_head = nn.Linear(4, 5, bias=False)
            self.transformer = nn.ModuleDict({"wte": nn.Embedding(5, 4)})
            self.lm_head.weight = self.transformer["wte"].weight

    model = Model()
    facts = facts_of(table_violation(model.transformer["wte"].weight, BAD))
    assert facts["layer"] == certain(
        "transformer.wte", "Embedding", "num_embeddings", 5, "num_embeddings=5, embedding_dim=4"
    )
    assert facts["table"] == "token"
    logits = model.lm_head(model.transformer["wte"](torch.zeros(3, dtype=torch.long)))
    assert facts_of(label_violation(logits, BAD))["layer"] == certain(
        "lm_head", "Linear", "out_features", 5, "in_features=4, out_features=5"
    )


def test_a_parameter_table(facts_of):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.zeros(5, 4))

    model = Model()
    layer = facts_of(table_violation(model.table, BAD))["layer"]
    assert layer == certain("table", "Parameter", "shape[0]", 5)
    loose = torch.zeros(5, 4, requires_grad=True)
    assert facts_of(table_violation(loose, BAD))["layer"] == certain("loose", "Parameter", "shape[0]", 5)
    del model


def test_a_head_made_of_a_parameter(facts_of):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.prototypes = nn.Parameter(torch.zeros(5, 7))

    model = Model()
    layer = facts_of(label_violation(torch.zeros(3, 7) @ model.prototypes.t(), BAD))["layer"]
    assert layer == certain("prototypes", "Parameter", "shape[0]", 5)


def test_weight_norm(facts_of):
    if not hasattr(nn.utils, "parametrizations"):
        pytest.skip("torch without parametrizations")
    model = nn.Sequential(nn.Linear(7, 7), nn.utils.parametrizations.weight_norm(nn.Linear(7, 5)))
    layer = facts_of(label_violation(model(torch.zeros(3, 7)), BAD))["layer"]
    assert (layer["name"], layer["attribute"], layer["value"]) == ("model[1]", "out_features", 5)


def test_position_tables(facts_of):
    model = nn.ModuleDict(
        {"wpe": nn.Embedding(5, 4), "first": nn.Embedding(5, 4), "user_ids": nn.Embedding(5, 4)}
    )
    assert facts_of(table_violation(model["wpe"].weight, torch.tensor([5, 0])))["table"] == "position"
    assert (
        facts_of(table_violation(model["first"].weight, torch.arange(8).repeat(2, 1)))["table"] == "position"
    )
    assert "table" not in facts_of(table_violation(model["user_ids"].weight, torch.tensor([3, 5, 1])))


def test_special_ids(facts_of):
    class Tokenizer:
        pad_token_id = 5
        eos_token_id = None

    tokenizer, PAD_IDX, number = Tokenizer(), 7, 11
    table = nn.Embedding(5, 4)
    assert facts_of(table_violation(table.weight, BAD))["special_ids"] == {"pad_token_id": 5, "PAD_IDX": 7}
    del tokenizer, PAD_IDX, number


def test_indexing_data_names_no_layer(facts_of):
    data, model = torch.zeros(5, 4), nn.Linear(4, 5)
    violation = make_violation("index.indices", BAD, -5, 5, {"self": data, "indices": [BAD]})
    assert "layer" not in facts_of(violation)
    del model


def test_children_of_a_root_without_names_go_by_its_variable(facts_of):
    class Head(nn.Module):
        def __init__(self, *sizes):
            super().__init__()
            self.fc = nn.Linear(*sizes)

        def forward(self, x):
            return self.fc(x)

    class Learner:
        def __init__(self, model):
            self.model = model

    nested = nn.Sequential(nn.ReLU(), nn.Sequential(nn.ReLU(), Head(7, 5)))
    layer = facts_of(label_violation(nested(torch.zeros(3, 7)), BAD))["layer"]
    assert layer["name"] == "nested[1][1].fc"
    learn = Learner(nested)
    del nested
    layer = facts_of(label_violation(learn.model(torch.zeros(3, 7)), BAD))["layer"]
    assert layer["name"] == "learn.model[1][1].fc"


def test_tables_of_one_shape_in_one_list(facts_of):
    parts = nn.ModuleList([nn.Embedding(8, 4) for _ in range(3)])
    layer = facts_of(table_violation(parts[1].weight, torch.tensor([9])))["layer"]
    assert (layer["name"], layer["siblings"]) == ("parts[1]", {"count": 3, "rows": 24})


def test_tables_of_other_shapes_in_one_list(facts_of):
    columns = nn.ModuleList([nn.Embedding(8, 4), nn.Embedding(5, 4)])
    assert "siblings" not in facts_of(table_violation(columns[0].weight, torch.tensor([9])))["layer"]


class Profile(nn.Module):
    def __init__(self):
        super().__init__()
        self.profile = nn.Parameter(torch.zeros(4, 96))

    def forward(self, place):
        return self.profile.index_select(0, place)


def test_a_parameter_of_which_rows_were_taken_before(facts_of):
    model = Profile()
    rows, slot = model(torch.tensor([0, 2, 1])), torch.tensor([[3], [96], [5]])
    args = {"self": rows, "dim": 1, "index": slot}
    facts = facts_of(make_violation("gather.index", slot, 0, 96, args))
    assert facts["layer"] == certain("profile", "Parameter", "shape[1]", 96)


class Graph(nn.Module):
    def __init__(self, entities, relations):
        super().__init__()
        self.entity = nn.Embedding(entities, 4)
        self.relation = nn.Embedding(relations, 4)


def test_the_other_table_of_the_module(facts_of):
    model = Graph(16, 42)
    layer = facts_of(table_violation(model.entity.weight, torch.tensor([32])))["layer"]
    assert layer["partner"] == {"name": "relation", "rows": 42}
    assert "partner" not in facts_of(table_violation(model.relation.weight, torch.tensor([50])))["layer"]


class Panels(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(7, 5) for _ in range(3))

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], 1).reshape(-1, 5)


def test_logits_of_several_heads_of_one_list(facts_of):
    model = Panels()
    target = torch.zeros(6, dtype=torch.long)
    target[4] = 5
    layer = facts_of(label_violation(model(torch.zeros(2, 7)), target))["layer"]
    assert (layer["name"], layer["certain"]) == ("heads.0 to heads.2", False)


def test_of_two_models_with_a_layer_of_one_name_the_one_that_runs():
    from trapline._fault.program import libraries

    class Coder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(5, 2)

        def forward(self):
            return libraries.around_layer({"name": "embedding"})

    encoder, decoder = Coder(), Coder()
    assert decoder()[0] is decoder
    assert encoder()[0] is encoder
