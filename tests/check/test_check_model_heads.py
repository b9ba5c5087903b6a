"""`trapline check model`: heads that are no classifier, timm's folders, a token table that nobody saved."""

import json
from pathlib import Path

import pytest
from checking import only_finding, report

np = pytest.importorskip("numpy")
safetensors = pytest.importorskip("safetensors.numpy")


def model(folder: Path, config: dict, **sizes: tuple) -> Path:
    """``sizes``: the tensors, with `__` for a dot."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    weights = {name.replace("__", "."): np.ones(size, "float32") for name, size in sizes.items()}
    safetensors.save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


def test_the_output_of_a_multiple_choice_is_no_class(tmp_path: Path) -> None:
    names = {f"L{i}": i for i in range(3)}
    config = {
        "model_type": "mra",
        "architectures": ["MraForMultipleChoice"],
        "label2id": names,
        "id2label": {str(i): name for name, i in names.items()},
    }
    sizes = {"classifier__weight": (1, 8), "classifier__bias": (1,)}
    report("model", model(tmp_path / "m", config, **sizes), exit_code=0)
    config["label2id"]["L3"] = 3
    assert only_finding("model", model(tmp_path / "m", config, **sizes))["code"] == "TL101"
    config["label2id"].popitem()
    config["architectures"] = ["MraForSequenceClassification"]
    assert only_finding("model", model(tmp_path / "m", config, **sizes))["code"] == "TL102"


def timm(folder: Path, classes: int, **more: object) -> Path:
    config = {
        "architecture": "resnet10t",
        "num_classes": classes,
        "pretrained_cfg": {"classifier": "fc", "num_classes": classes, **more},
    }
    return model(folder, config, conv1__weight=(4, 3, 3, 3), block__se__fc__weight=(2, 4), fc__weight=(6, 4))


def test_timm_makes_as_many_outputs_as_its_config_says(tmp_path: Path) -> None:
    report("model", timm(tmp_path / "m", 6), exit_code=0)
    report("model", timm(tmp_path / "m", 5, label_offset=1), exit_code=0)  # one more, for the background
    finding = only_finding("model", timm(tmp_path / "m", 9))
    assert finding["code"] == "TL102"
    assert "num_classes is 9, but `fc.weight` has 6 outputs" in finding["summary"]


def causal(folder: Path, tied: bool, **more: tuple) -> Path:
    config = {
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "vocab_size": 20,
        "tie_word_embeddings": tied,
    }
    return model(folder, config, lm_head__weight=(20, 8), model__norm__weight=(8,), **more)


def test_a_token_table_that_no_file_holds(tmp_path: Path) -> None:
    report("model", causal(tmp_path / "m", False, model__embed_tokens__weight=(20, 8)), exit_code=0)
    report("model", causal(tmp_path / "m", True), exit_code=0)  # the output layer is the table
    report("model", causal(tmp_path / "m", False, model__tok__weight=(20, 8)), exit_code=0)  # by another name
    finding = only_finding("model", causal(tmp_path / "m", False, model__embed_positions__weight=(64, 8)))
    assert finding["code"] == "TL204"
    assert "no file holds a table of 20 tokens besides `lm_head.weight`" in finding["summary"]
