"""Weights that the safetensors library saved, whole and in shards; headers that lie are errors."""

import json
import struct

import numpy as np
import pytest
from reading import read, read_well, write

safetensors_numpy = pytest.importorskip("safetensors.numpy")


def save(path, tensors: dict) -> None:
    safetensors_numpy.save_file(tensors, str(path))


def test_every_dtype_of_numpy(tmp_path):
    random = np.random.default_rng(3)
    tensors = {}
    for code in ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]:
        tensors[f"layer.{code}"] = random.integers(0, 2, (3, 5)).astype(code)
    tensors["scalar"] = np.array(2.5, "f4")
    tensors["empty"] = np.zeros((0, 4), "f4")
    tensors["nan"] = np.array([1, np.nan, np.inf, -np.inf], "f4")
    save(tmp_path / "model.safetensors", tensors)
    reading = read_well(tmp_path / "model.safetensors")
    assert reading.reader == "safetensors"
    assert set(reading.columns) == set(tensors)
    for name, tensor in tensors.items():
        column = reading.columns[name]
        wanted = tensor.view(np.uint16) if tensor.dtype == np.float16 else tensor
        assert column.sizes == list(tensor.shape), name
        assert np.array_equal(column.array(), wanted, equal_nan=wanted.dtype.kind == "f"), name


def test_dtypes_that_only_torch_has(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    values = torch.tensor([0.0, -0.0, 1.0, -1.5, 0.0625, 240.0, float("nan"), 0.001953125])
    tensors = {
        "bf16": values.to(torch.bfloat16),
        "e4m3": torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn),
        "e5m2": torch.arange(256, dtype=torch.uint8).view(torch.float8_e5m2),
        "e8m0": torch.arange(256, dtype=torch.uint8).view(torch.float8_e8m0fnu),
        "c64": torch.complex(values, -values),
    }
    save_file(tensors, str(tmp_path / "m.safetensors"))
    columns = read_well(tmp_path / "m.safetensors").columns
    assert columns["bf16"].values == tensors["bf16"].view(torch.uint16).tolist()
    for name in ["e4m3", "e5m2", "e8m0"]:
        assert columns[name].dtype == "float32"
        wanted = tensors[name].to(torch.float32).numpy()
        assert np.array_equal(columns[name].array(), wanted, equal_nan=True), name
    assert columns["c64"].sizes == [8, 2]
    pairs = torch.view_as_real(tensors["c64"]).numpy()
    assert np.array_equal(columns["c64"].array(), pairs, equal_nan=True)


def test_only_what_is_wanted(tmp_path):
    save(tmp_path / "m.safetensors", {"a": np.arange(4), "b": np.arange(5)})
    columns = read_well(tmp_path / "m.safetensors", "b").columns
    assert columns["a"].values == []
    assert columns["b"].values == [0, 1, 2, 3, 4]


def shards(folder):
    save(folder / "model-00001-of-00002.safetensors", {"a": np.arange(4), "b": np.arange(5.0)})
    save(folder / "model-00002-of-00002.safetensors", {"c": np.arange(6)})
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    index = {"metadata": {"total_size": 120}, "weight_map": {"a": first, "b": first, "c": second}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return index


@pytest.mark.parametrize("target", [".", "model.safetensors.index.json"])
def test_shards_are_one_source(tmp_path, target):
    shards(tmp_path)
    columns = read_well(tmp_path / target).columns
    assert columns["a"].values == [0, 1, 2, 3]
    assert columns["b"].values == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert columns["c"].values == [0, 1, 2, 3, 4, 5]
    assert columns["c"].files == [
        str(tmp_path / target / "model-00002-of-00002.safetensors")
        .replace("/model.safetensors.index.json/", "/")
        .replace("/./", "/")
    ]


def test_shards_as_transformers_saves_them(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16
    )
    model = transformers.BertModel(config)
    model.save_pretrained(tmp_path, max_shard_size="8KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    columns = read_well(tmp_path).columns
    state = model.state_dict()
    assert set(columns) == set(state)
    for name, tensor in state.items():
        assert torch.equal(torch.from_numpy(columns[name].array()), tensor), name


def test_a_missing_shard_is_named(tmp_path):
    shards(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    reading = read(tmp_path)
    assert "model-00002-of-00002.safetensors: No such file or directory" in reading.error
    assert reading.columns["a"].values == [0, 1, 2, 3]


def test_a_tensor_that_its_shard_lacks_is_named(tmp_path):
    index = shards(tmp_path)
    index["weight_map"]["d"] = "model-00002-of-00002.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert 'the index says that it holds "d", but it does not' in read(tmp_path).error


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "..", ""])
def test_an_index_does_not_lead_out_of_its_folder(tmp_path, name):
    write(tmp_path / "m.safetensors.index.json", json.dumps({"weight_map": {"a": name}}).encode())
    assert "which is not a file name" in read(tmp_path).error


def raw(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)) -> dict:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "too short for a .safetensors header (at byte 0)"),
        (b"1234567", "too short for a .safetensors header (at byte 7)"),
        (struct.pack("<Q", 2**63) + b"{}", "the header claims 9223372036854775808 bytes"),
        (struct.pack("<Q", 90) + b"{}", "the header ends too early: it claims 90 bytes (at byte 10)"),
        (raw(b"[]"), "the header is no valid JSON"),
        (raw(b'{"a":'), "the header"),
        (raw(b"{}{}"), "the header goes on behind its end"),
        (raw(b"[" * 100000), "the header is no valid JSON"),
        (raw(b'{"a":' * 20000 + b"1" + b"}" * 20000), "the header"),
        (raw({"a": entry()}), 'the data of "a" ends behind the end of the file, 8 bytes are missing'),
        (raw({"a": entry()}, b"12345678x"), "there are bytes that belong to no tensor"),
        (raw({"a": entry(offsets=(4, 12))}, b"1" * 12), 'the data of "a" leaves a gap in front of it'),
        (raw({"a": entry(), "b": entry(offsets=(4, 12))}, b"1" * 12), 'the data of "b" overlaps'),
        (raw({"a": entry(offsets=(8, 0))}, b"1" * 8), "its offsets do not fit its shape"),
        (raw({"a": entry(shape=(3,))}, b"1" * 8), "its offsets do not fit its shape"),
        (raw({"a": entry(shape=(2**62, 4))}, b"1" * 8), "its shape has more elements than any file can hold"),
        (raw({"a": entry(shape=(-2,))}, b"1" * 8), "its shape is not valid"),
        (raw({"a": entry(dtype="F33")}, b"1" * 8), 'the dtype "F33" is not known'),
        (raw(b'{"a":{"dtype":"F32"}}'), "it lacks dtype, shape or data_offsets"),
        (
            raw(b'{"a":%s,"a":%s}' % ((json.dumps(entry()).encode(),) * 2), b"1" * 8),
            'the header names "a" twice',
        ),
    ],
)
def test_headers_that_lie(tmp_path, data, why):
    path = write(tmp_path / "a.safetensors", data)
    reading = read(path)
    assert reading.code == 2
    assert why in reading.error
    assert f"cannot read {path}: " in reading.error and "(at byte " in reading.error


def test_truncated_anywhere(tmp_path):
    save(tmp_path / "a.safetensors", {"a": np.arange(9), "b": np.arange(3.0)})
    whole = (tmp_path / "a.safetensors").read_bytes()
    for size in range(0, len(whole), 5):
        reading = read(write(tmp_path / "cut.safetensors", whole[:size]))
        assert reading.code == 2 and "(at byte " in reading.error, size


def test_unaligned_data_arrives(tmp_path):
    numbers = np.arange(5, dtype="<f8")
    header = json.dumps({"a": entry("F64", (5,), (0, 40))}).encode()
    header += b" " * ((3 - len(header)) % 8)  # data begins at an odd address
    column = read_well(write(tmp_path / "a.safetensors", raw(header, numbers.tobytes()))).columns["a"]
    assert column.values == numbers.tolist()
