# ruff: noqa: E501 - a summary stays whole, to be found by searching for it
"""`trapline check model`: folders that transformers wrote, sound and with one mistake each (C2)."""

import json
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest
from checking import only_finding, report, run

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

from folders import MODELS, edit, make_folder  # noqa: E402


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of an architecture, made once; whoever changes it takes a copy."""
    made: dict[str, Path] = {}

    def get(kind: str) -> Path:
        if kind not in made:
            made[kind] = make_folder(tmp_path_factory.mktemp("models") / kind, kind)
        return made[kind]

    return get


@pytest.fixture
def folder(sound: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    def get(kind: str) -> Path:
        return Path(shutil.copytree(sound(kind), tmp_path / kind))

    return get


@pytest.mark.parametrize("kind", MODELS)
def test_a_sound_model_is_clean(sound: Callable[[str], Path], kind: str) -> None:
    clean = report("model", sound(kind), exit_code=0)
    assert clean["findings"] == []
    assert clean["verdict"] == "clean"


def test_a_sound_model_in_shards_is_clean(tmp_path: Path) -> None:
    make_folder(tmp_path, "llama", max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    report("model", tmp_path, exit_code=0)


def change_weights(path: Path, change: Callable[[dict], None]) -> None:
    file = path / "model.safetensors"
    state = safetensors.load_file(file)
    change(state)
    safetensors.save_file(state, file, {"format": "pt"})


def nan_weight(path: Path) -> None:
    def change(state: dict) -> None:
        state["transformer.h.1.mlp.c_fc.weight"][3, 5] = float("nan")

    change_weights(path, change)


def drop(name: str) -> Callable[[Path], None]:
    return lambda path: change_weights(
        path, lambda state: [state.pop(key) for key in list(state) if name in key]
    )


def add_token(path: Path) -> None:
    file = path / "tokenizer.json"
    content = json.loads(file.read_text())
    content["added_tokens"].append({**content["added_tokens"][0], "id": 120, "content": "<extra>"})
    file.write_text(json.dumps(content))


def config(**changes: Any) -> Callable[[Path], None]:
    return lambda path: edit(path / "config.json", **changes)


def named(count: int) -> dict:
    return {str(i): f"LABEL_{i}" for i in range(count)}


MISTAKES = [
    ("vocab-size", "gpt2", config(vocab_size=130), "TL201",
     "config.json: vocab_size is 130, but `transformer.wte.weight` has 120 rows"),
    ("hidden-size", "gpt2", config(n_embd=48), "TL201",
     "config.json: n_embd is 48, but `transformer.wte.weight` has 32 columns"),
    ("added-token", "gpt2", add_token, "TL103",
     "tokenizer.json: the id of '<extra>' is 120, but the table `transformer.wte` has 120 rows: valid ids are [0, 120)"),
    ("pad-id", "bert", config(pad_token_id=120), "TL103",
     "config.json: pad_token_id is 120, but the table `bert.embeddings.word_embeddings` has 120 rows: "
     "valid ids are [0, 120); pad_token_id is 120, which has no row"),
    ("pad-minus-one", "llama", lambda path: (config(pad_token_id=-1)(path), edit(path / "generation_config.json", pad_token_id=-1)),
     "TL103", "config.json: pad_token_id is -1, but the table `model.embed_tokens` has 120 rows: valid ids are [0, 120)"
     "; -1 may be padding, which needs a row of its own, or what a look-up gives that found nothing"),
    ("generation-id", "llama", lambda path: edit(path / "generation_config.json", eos_token_id=[3, 500]), "TL103",
     "generation_config.json: eos_token_id is 500, but the table `model.embed_tokens` has 120 rows: "
     "valid ids are [0, 120); eos_token_id is 500, which has no row"),
    ("special-token-in-no-vocabulary", "gpt2", lambda path: edit(path / "tokenizer_config.json", pad_token="<pad>"), "TL103",
     "tokenizer_config.json: pad_token '<pad>', which no vocabulary holds, gets a new id that is 120, but the table "
     "`transformer.wte` has 120 rows: valid ids are [0, 120)"),
    ("positions", "opt", config(max_position_embeddings=64), "TL201",
     "config.json: max_position_embeddings is 64, which needs 66 rows, but `model.decoder.embed_positions.weight` has 64"),
    ("longest-sequence", "roberta", lambda path: edit(path / "tokenizer_config.json", model_max_length=66), "TL104",
     "tokenizer_config.json: model_max_length is 66, but the position table "
     "`roberta.embeddings.position_embeddings.weight` has room for 64 tokens (2 of its 66 rows are never used)"),
    ("classes", "vit", config(id2label=named(5), label2id=None), "TL102",
     "config.json: id2label names 5 classes, but `classifier.weight` has 4 outputs"),
    ("label2id", "bert", config(label2id={f"LABEL_{i}": i + 1 for i in range(4)}), "TL101",
     "config.json: label2id gives 'LABEL_3' the label 4, but there are 4 classes: valid labels are [0, 4)"),
    ("untied-head", "llama", drop("lm_head"), "TL204",
     "config.json: tie_word_embeddings is false, but no file holds an output layer (lm_head.weight): it would be random"),
    ("missing-layer", "t5", drop("decoder.block.1."), "TL204",
     "config.json: num_decoder_layers is 2, but no file holds the weights of `decoder.block.1`: they would be random"),
    ("too-many-layers", "gpt2", config(n_layer=1), "TL201",
     "config.json: n_layer is 1, but the weights have a layer `transformer.h.1`"),
    ("dtype", "whisper", config(dtype="float16"), "TL203",
     "config.json: dtype is float16, but the weights are float32"),
    ("nan", "gpt2", nan_weight, "TL109",
     "model.safetensors: transformer.h.1.mlp.c_fc.weight[3, 5] is nan: 1 of 4096 values is not finite"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "break_it", "code", "summary"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES]
)
def test_a_mistake_is_named(
    folder: Callable[[str], Path], kind: str, break_it: Callable[[Path], object], code: str, summary: str
) -> None:
    path = folder(kind)
    break_it(path)
    finding = only_finding("model", path)
    assert finding["code"] == code
    assert finding["summary"] == f"{path}/{summary}"
    assert finding["fix"]


def test_a_missing_shard(tmp_path: Path) -> None:
    make_folder(tmp_path, "llama", max_shard_size="20KB")
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    gone = index["model.layers.0.mlp.up_proj.weight"]
    (tmp_path / gone).unlink()
    lost = sum(file == gone for file in index.values())
    finding = report("model", tmp_path, exit_code=1)["findings"][0]
    assert finding["code"] == "TL204"
    assert finding["summary"].endswith(
        f"{gone} is not in the folder: {lost} of {len(index)} tensors are missing"
    )


def test_a_tensor_that_its_shard_does_not_hold(tmp_path: Path) -> None:
    make_folder(tmp_path, "llama", max_shard_size="20KB")
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    content["weight_map"]["model.extra.weight"] = content["weight_map"]["model.norm.weight"]
    index.write_text(json.dumps(content))
    finding = only_finding("model", tmp_path)
    assert finding["code"] == "TL204"
    assert "it says where `model.extra.weight` lies, but that file does not hold it" in finding["summary"]


def test_older_tokenizers(folder: Callable[[str], Path]) -> None:
    """vocab.txt and added_tokens.json, as BERT had them, in place of tokenizer.json."""
    path = folder("bert")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (path / name).unlink(missing_ok=True)
    (path / "vocab.txt").write_text("".join(f"w{i}\n" for i in range(120)))
    report("model", path, exit_code=0)
    (path / "added_tokens.json").write_text('{"<x>": 121}')
    assert "added_tokens.json: the id of '<x>' is 121" in only_finding("model", path)["summary"]


def test_sentencepiece(folder: Callable[[str], Path], tmp_path: Path) -> None:
    trainer = pytest.importorskip("sentencepiece").SentencePieceTrainer
    text = tmp_path / "text.txt"
    text.write_text("\n".join(f"the quick brown fox {i} jumps over the lazy dog" for i in range(200)))
    trainer.train(input=str(text), model_prefix=str(tmp_path / "sp"), vocab_size=50, minloglevel=2)
    path = folder("t5")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (path / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "sp.model", path / "spiece.model")
    report("model", path, exit_code=0)
    change_weights(path, lambda state: state.update({"shared.weight": state["shared.weight"][:49].clone()}))
    edit(path / "config.json", vocab_size=49)
    assert "spiece.model: the id of its last piece is 49" in only_finding("model", path)["summary"]


def test_damaged_files_are_errors(folder: Callable[[str], Path]) -> None:
    path = folder("gpt2")
    (path / "tokenizer.json").write_text("[" * 100_000)
    (path / "tokenizer.model").write_bytes(b"\xff" * 50)
    done = run("model", path)
    assert done.returncode == 2
    assert "tokenizer.json" in done.stderr and "nested deeper" in done.stderr
    assert "it has neither the form of sentencepiece nor that of tiktoken, or ends too early" in done.stderr


@pytest.mark.parametrize(("words", "error"), [
    (["model"], "trapline: no model to check: name one folder"),
    (["model", "none"], "trapline: cannot check none: it is not a folder"),
    (["model", "."], "trapline: cannot check .: it holds no config.json"),
])  # fmt: skip
def test_usage(words: list, error: str, tmp_path: Path) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(error)


def test_labels_and_ids_against_a_model(sound: Callable[[str], Path], tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("label\n" + "0\n1\n2\n3\n" * 10 + "4\n")
    finding = only_finding("labels", labels, "--model", sound("bert"))
    assert finding["layer"] == {
        "name": "classifier", "type": "Linear", "attribute": "out_features", "value": 4, "needed": 5,
        "arguments": "in_features=32, out_features=4",
    }  # fmt: skip
    assert finding["fix"] == [
        "if there are meant to be more than 4 classes: change `classifier` to Linear(in_features=32, "
        "out_features=5): labels go to 4 in the whole data set (41 labels)",
        "if not, correct the labels: 1 of 41 is outside [0, 4)",
    ]
    ids = tmp_path / "ids.jsonl"
    ids.write_text(json.dumps({"input_ids": [1] * 65}) + "\n" + json.dumps({"input_ids": [119, 120]}) + "\n")
    codes = [one["code"] for one in report("ids", ids, "--model", sound("roberta"), exit_code=1)["findings"]]
    assert codes == ["TL103", "TL104"]
