# ruff: noqa: E501 - a summary stays whole, to be found by searching for it
"""Model folders whose files are missing, stand-ins, of another kind, or say other things of the tables."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest
from checking import only_finding, report, run

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

from folders import edit, make_folder  # noqa: E402

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 497774208\n"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    kept: dict[tuple, Path] = {}

    def get(kind: str, **save: Any) -> Path:
        key = (kind, *save.items())
        if key not in kept:
            kept[key] = make_folder(tmp_path_factory.mktemp("files") / kind, kind, **save)
        return kept[key]

    return get


@pytest.fixture
def folder(made: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    return lambda kind, **save: Path(shutil.copytree(made(kind, **save), tmp_path / kind))


def test_shards_without_their_index(folder: Callable[..., Path]) -> None:
    path = folder("llama", max_shard_size="20KB")
    (path / "model.safetensors.index.json").unlink()
    finding = only_finding("model", path)
    assert finding["code"] == "TL204"
    assert "(model-00001-of-0000" in finding["summary"]
    assert "but no model.safetensors.index.json: from_pretrained finds no weights" in finding["summary"]


def test_a_variant_alone(folder: Callable[..., Path]) -> None:
    path = folder("llama", variant="fp16")
    finding = only_finding("model", path)
    assert finding["summary"] == (
        f"{path}: its weights are of the variant 'fp16' (model.fp16.safetensors): from_pretrained looks for "
        "model.safetensors and finds none"
    )
    assert finding["fix"][0] == 'load it with from_pretrained(..., variant="fp16")'


def test_no_weights_are_no_pass(folder: Callable[..., Path]) -> None:
    path = folder("bert")
    (path / "model.safetensors").unlink()
    done = run("model", path)
    assert done.returncode == 2
    assert "it holds no weights that can be read" in done.stderr


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "tokenizer.json", "generation_config.json"]
)
def test_a_pointer_of_git_lfs(folder: Callable[..., Path], name: str) -> None:
    path = folder("llama")
    (path / name).write_text(POINTER)
    done = run("model", path)
    assert done.returncode == 2
    assert (
        f"trapline: cannot read {path / name}: this is a Git LFS pointer, not the file: fetch the file with `git lfs pull`"
        in done.stderr
    )


@pytest.mark.parametrize(("content", "why"), [
    ("", "the file is empty"),
    ("\n<!DOCTYPE HTML><html><title>404</title>", "this is a page of a web server (HTML), not the file"),
])  # fmt: skip
@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_an_empty_file_and_the_page_of_an_error(
    folder: Callable[..., Path], name: str, content: str, why: str
) -> None:
    path = folder("llama")
    (path / name).write_text(content)
    done = run("model", path)
    assert done.returncode == 2
    assert f"cannot read {path / name}: {why}" in done.stderr


def config(**changes: Any) -> Callable[[Path], None]:
    return lambda path: edit(path / "config.json", **changes)


MISTAKES = [
    ("bert", config(num_labels=9), "TL102",
     "num_labels is 9, but id2label names 4 classes: loading the config fails"),
    ("bert", config(id2label=None, label2id=None), "TL102",
     "it has no id2label, which means 2 classes, but `classifier.weight` has 4 outputs"),
    ("bert", config(id2label=None, label2id=None, num_labels=9), "TL102",
     "num_labels is 9, but `classifier.weight` has 4 outputs"),
    ("bert", config(type_vocab_size=1), "TL201",
     "type_vocab_size is 1, but `bert.embeddings.token_type_embeddings.weight` has 2 rows"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "break_it", "code", "summary"), MISTAKES, ids=[row[3][:24] for row in MISTAKES]
)
def test_what_loading_refuses(
    folder: Callable[..., Path], kind: str, break_it: Callable, code: str, summary: str
) -> None:
    path = folder(kind)
    break_it(path)
    finding = only_finding("model", path)
    assert (finding["code"], finding["summary"]) == (code, f"{path}/config.json: {summary}")
    with pytest.raises((ValueError, RuntimeError)):
        __import__("transformers").AutoModelForSequenceClassification.from_pretrained(path)


def test_help_for_a_special_id_grows_no_table(folder: Callable[..., Path]) -> None:
    path = folder("bert")
    edit(path / "config.json", pad_token_id=50257)
    assert only_finding("model", path)["fix"] == [
        "set pad_token_id to the id that the model's own tokenizer has for it: it is below 120",
        "if the token was added to the tokenizer: model.resize_token_embeddings(len(tokenizer)), then model.save_pretrained(...)",
    ]


def packed(path: Path, method: str, change: Callable[[str, Any], dict]) -> None:
    """Every weight of a linear layer as ``method`` stores it."""
    state = safetensors.load_file(path / "model.safetensors")
    made: dict = {}
    for name, tensor in state.items():
        linear = "_proj.weight" in name
        made.update(change(name.removesuffix(".weight"), tensor) if linear else {name: tensor.half()})
    safetensors.save_file(
        {key: tensor.contiguous() for key, tensor in made.items()}, path / "model.safetensors"
    )
    edit(path / "config.json", quantization_config={"quant_method": method}, dtype="float16")


QUANTIZED: dict[str, Callable[[str, Any], dict]] = {
    "bitsandbytes": lambda name, w: {
        name + ".weight": torch.zeros(w.numel() // 2, 1, dtype=torch.uint8),
        name + ".weight.absmax": torch.ones(w.numel() // 64),
    },
    "gptq": lambda name, w: {
        name + ".qweight": torch.zeros(w.shape[1] // 8, w.shape[0], dtype=torch.int32),
        name + ".scales": torch.ones(1, w.shape[0]).half(),
        name + ".qzeros": torch.zeros(1, w.shape[0] // 8, dtype=torch.int32),
    },
    "awq": lambda name, w: {
        name + ".qweight": torch.zeros(w.shape[1], w.shape[0] // 8, dtype=torch.int32),
        name + ".scales": torch.ones(1, w.shape[0]).half(),
    },
    "fp8": lambda name, w: {
        name + ".weight": w.to(torch.float8_e4m3fn),
        name + ".weight_scale_inv": torch.ones(1, 1),
    },
}


@pytest.mark.parametrize("method", QUANTIZED)
def test_quantised_weights_are_clean(folder: Callable[..., Path], method: str) -> None:
    path = folder("llama")
    packed(path, method, QUANTIZED[method])
    assert report("model", path, exit_code=0)["findings"] == []


def test_nan_in_fp8_is_told_by_its_own_dtype(tmp_path: Path) -> None:
    weight = torch.ones(4, 4)
    weight[1, 2] = float("nan")
    safetensors.save_file({"fc.weight": weight.to(torch.float8_e4m3fn)}, tmp_path / "w.safetensors")
    finding = only_finding("finite", tmp_path / "w.safetensors")
    assert finding["tensor"]["dtype"] == "float8_e4m3fn"
    assert finding["fix"][0].startswith("take an earlier checkpoint")
    assert not any("fill the rows" in fix for fix in finding["fix"])


def ranks(count: int) -> str:
    return "".join(f"{base64.b64encode(i.to_bytes(2, 'big')).decode()} {i}\n" for i in range(count))


def without_tokenizer(path: Path) -> Path:
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (path / name).unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("name", ["tokenizer.model", "qwen.tiktoken"])
def test_tiktoken(folder: Callable[..., Path], name: str) -> None:
    path = without_tokenizer(folder("llama"))
    (path / name).write_text(ranks(120))
    report("model", path, exit_code=0)
    (path / name).write_text(ranks(121))
    assert f"{name}: the id of its last token is 120, but the table" in only_finding("model", path)["summary"]


def test_tekken(folder: Callable[..., Path]) -> None:
    path = without_tokenizer(folder("llama"))
    tekken = {
        "config": {"default_vocab_size": 120, "default_num_special_tokens": 20},
        "vocab": [{"rank": 0}] * 150,
    }
    (path / "tekken.json").write_text(json.dumps(tekken))
    report("model", path, exit_code=0)
    tekken["config"]["default_vocab_size"] = 130  # type: ignore[index]
    (path / "tekken.json").write_text(json.dumps(tekken))
    assert "tekken.json: the id of its last token is 129" in only_finding("model", path)["summary"]
    (path / "tekken.json").write_text('{"vocab": 3}')
    assert "it has no vocab and config as Mistral writes them" in run("model", path).stderr


def adapter(path: Path, base: Path, rank: int = 4, width: int = 32, **settings: Any) -> Path:
    path.mkdir()
    settings = {"peft_type": "LORA", "r": rank, "base_model_name_or_path": str(base), **settings}
    (path / "adapter_config.json").write_text(json.dumps(settings))
    name = "base_model.model.model.layers.0.self_attn.q_proj"
    state = {f"{name}.lora_A.weight": torch.ones(rank, width), f"{name}.lora_B.weight": torch.ones(32, rank)}
    safetensors.save_file(state, path / "adapter_model.safetensors")
    return path


def test_adapters(folder: Callable[..., Path], tmp_path: Path) -> None:
    base = folder("llama")
    report("model", adapter(tmp_path / "good", base), exit_code=0)
    rank = only_finding("model", adapter(tmp_path / "rank", base, r=8))
    assert rank["summary"].endswith(
        "adapter_config.json: r is 8, but `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight` has rank 4"
    )
    width = only_finding("model", adapter(tmp_path / "width", base, width=64))
    assert (
        "of 64 inputs and 32 outputs at `model.layers.0.self_attn.q_proj`, but the base model's has 32 and 32"
        in width["summary"]
    )
    half = adapter(tmp_path / "half", base)
    state = safetensors.load_file(half / "adapter_model.safetensors")
    state.pop("base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight")
    safetensors.save_file(state, half / "adapter_model.safetensors")
    assert only_finding("model", half)["code"] == "TL204"
    empty = adapter(tmp_path / "empty", base)
    (empty / "adapter_model.safetensors").unlink()
    assert run("model", empty).returncode == 2


def test_an_adapter_with_a_head_of_another_size(folder: Callable[..., Path], tmp_path: Path) -> None:
    base = folder("llama")
    state = safetensors.load_file(base / "model.safetensors")
    state["score.weight"] = torch.ones(6, 32)
    safetensors.save_file(state, base / "model.safetensors")
    path = adapter(tmp_path / "adapter", base)
    state = safetensors.load_file(path / "adapter_model.safetensors")
    for rows, exit_code in ((6, 0), (4, 1)):
        state["base_model.model.score.weight"] = torch.ones(rows, 32)
        safetensors.save_file(state, path / "adapter_model.safetensors")
        report("model", path, exit_code=exit_code)
    found = only_finding("model", path)
    assert found["code"] == "TL102" and "holds `score.weight` with 4 rows, but the base" in found["summary"]
    assert found["fix"][0] == "load the base model with num_labels=4, ignore_mismatched_sizes=True"


def test_an_adapter_with_added_tokens(folder: Callable[..., Path], tmp_path: Path) -> None:
    base = folder("llama")
    path = adapter(tmp_path / "adapter", base)
    (path / "added_tokens.json").write_text('{"<new>": 120}')
    assert (
        "added_tokens.json: the id of '<new>' is 120, but the table `model.embed_tokens` has 120 rows"
        in only_finding("model", path)["summary"]
    )
    state = safetensors.load_file(path / "adapter_model.safetensors")
    state["base_model.model.model.embed_tokens.weight"] = torch.ones(121, 32)
    safetensors.save_file(state, path / "adapter_model.safetensors")
    (path / "tokenizer.json").write_text((base / "tokenizer.json").read_text())
    report("model", path, exit_code=0)
    (path / "tokenizer.json").unlink()
    (path / "added_tokens.json").unlink()
    assert "has 121 rows, but the base model's table has 120" in only_finding("model", path)["summary"]


def test_other_objects_of_a_checkpoint_are_named(tmp_path: Path) -> None:
    import argparse

    torch.save(
        {"args": argparse.Namespace(lr=1), "fc.weight": torch.tensor([1.0, float("nan")])}, tmp_path / "c.pt"
    )
    finding = report("finite", tmp_path / "c.pt", exit_code=1)
    assert finding["findings"][0]["summary"].endswith("fc.weight[1] is nan: 1 of 2 values is not finite")
    assert (
        f"{tmp_path}/c.pt: not looked into, and nothing of it run: argparse.Namespace at args"
        in finding["notes"]
    )
