"""Checkpoints that torch.save wrote; objects in them that are no tensors are told by name, and never run."""

import argparse
import collections
import enum
import io
import pathlib
import pickle
import zipfile

import numpy as np
import pytest
from reading import read, read_well, write

torch = pytest.importorskip("torch")


def numpy_of(tensor) -> np.ndarray:
    """As inputs_dump shows it."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.contiguous().view(torch.uint16)
    if tensor.dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu):
        tensor = tensor.to(torch.float32)
    return tensor.numpy()


def assert_same(column, tensor) -> None:
    wanted = numpy_of(tensor)
    assert column.sizes == list(wanted.shape)
    assert np.array_equal(column.array(), wanted, equal_nan=wanted.dtype.kind == "f")


DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
DTYPES += ["complex64", "complex128", "uint16", "uint32", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(tmp_path, dtype):
    tensor = torch.rand(4, 6).mul(3).to(getattr(torch, dtype))
    torch.save(tensor, tmp_path / "t.pt")
    reading = read_well(tmp_path / "t.pt")
    assert reading.reader == "torch"
    assert_same(reading.columns[""], tensor)


def test_a_state_dict(tmp_path):
    model = torch.nn.Sequential(torch.nn.Embedding(10, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3))
    torch.save(model.state_dict(), tmp_path / "m.pth")
    columns = read_well(tmp_path / "m.pth").columns
    assert set(columns) == set(model.state_dict())
    for name, tensor in model.state_dict().items():
        assert_same(columns[name], tensor)


def test_a_checkpoint_with_an_optimizer(tmp_path):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    whole = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "best": 0.5,
        "history": [1, 2**40, -(2**70), None, True, "x"],
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "pair": (torch.zeros(1), [torch.ones(1)]),
        "size": torch.Size([2, 3]),
    }
    torch.save(whole, tmp_path / "c.pt")
    columns = read_well(tmp_path / "c.pt").columns
    assert_same(columns["model.weight"], model.weight)
    assert_same(columns["optimizer.state.0.exp_avg"], optimizer.state[model.weight]["exp_avg"])
    assert columns["optimizer.state.1.step"].values == [1.0]
    assert columns["parameter"].values == [1.0, 1.0]
    assert columns["pair.0"].values == [0.0] and columns["pair.1.0"].values == [1.0]


def test_views_are_read_as_views(tmp_path):
    base = torch.arange(60).reshape(3, 4, 5)
    views = {
        "transposed": base.permute(2, 0, 1),
        "slice": base[1:, ::2, 1:4],
        "last": base[2, 3, 4],
        "expanded": torch.tensor([7, 8]).expand(1000, 2),
        "empty": base[:0],
        "complex": torch.view_as_complex(torch.arange(24.0).reshape(3, 4, 2)).t(),
        "half": torch.arange(12, dtype=torch.bfloat16).reshape(3, 4).t(),
    }
    torch.save(views, tmp_path / "v.pt")
    columns = read_well(tmp_path / "v.pt").columns
    for name, tensor in views.items():
        if name == "expanded":
            # A thousand times the same two elements are read once.
            assert (columns[name].sizes, columns[name].values) == ([1, 2], [7, 8])
        else:
            assert_same(columns[name], tensor)


def rebuilt(path, change) -> None:
    """The archive again, with ``change(name, data)`` in place of each entry's data."""
    with zipfile.ZipFile(path) as archive:
        entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries:
            new = change(name, data)
            if new is not None:
                archive.writestr(name, new)


@pytest.mark.parametrize("dtype", ["int32", "float64", "bool", "complex64"])
def test_big_endian(tmp_path, dtype):
    tensor = torch.rand(5, 4).mul(9).to(getattr(torch, dtype)).t()
    torch.save({"a": tensor}, tmp_path / "t.pt")
    width = tensor.element_size() // (2 if tensor.is_complex() else 1)

    def change(name, data):
        if name.endswith("byteorder"):
            return b"big"
        if "/data/" in name:
            return (
                np.frombuffer(data, f"V{width}").astype(f"V{width}").view(f"<u{width}").byteswap().tobytes()
            )
        return data

    rebuilt(tmp_path / "t.pt", change)
    assert_same(read_well(tmp_path / "t.pt").columns["a"], tensor)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_nothing_is_run(tmp_path):
    torch.save({"a": torch.ones(2), "b": Evil(tmp_path / "ran")}, tmp_path / "t.pt")
    reading = read(tmp_path / "t.pt")
    assert 'the pickle wants "' in reading.error and '.open"' in reading.error
    assert "nothing of it was run (at byte " in reading.error
    assert not (tmp_path / "ran").exists()


class Settings:
    def __init__(self) -> None:
        self.rate, self.table = 0.5, torch.arange(3)


class Named(collections.OrderedDict):
    pass


class Level(enum.Enum):
    HIGH = 2


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (argparse.Namespace(lr=0.1, layers=[1, 2]), "argparse.Namespace"),
        (np.float64(3), "numpy"),
        (np.arange(3), "numpy"),
        (torch.float16, "torch.float16"),
        (torch.device("cpu"), "torch.device"),
        ({1, 2}, "set"),
        (frozenset("ab"), "frozenset"),
        (collections.Counter("a"), "collections.Counter"),
        (Level.HIGH, "Level"),
        (pathlib.PurePosixPath("/a/b"), "pathlib"),
        (torch.eye(2).to_sparse(), "torch._utils._rebuild_sparse_tensor"),
    ],
    ids=str,
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_other_objects_are_told_and_the_tensors_are_read(tmp_path, value, name, protocol):
    torch.save(
        {"a": torch.arange(4), "value": value, "b": torch.ones(2)},
        tmp_path / "t.pt",
        pickle_protocol=protocol,
    )
    reading = read_well(tmp_path / "t.pt")
    assert reading.columns["a"].values == [0, 1, 2, 3]
    assert reading.columns["b"].values == [1.0, 1.0]
    if protocol == 2 or "set" not in name:  # later protocols have instructions for sets
        assert any(where == "value" and name in what for where, what in reading.objects), reading.objects


def test_tensors_in_other_objects_are_read(tmp_path):
    named = Named(weight=torch.ones(2))
    model = torch.nn.Sequential(torch.nn.Linear(2, 1))
    torch.save({"own": Settings(), "named": named, "model": model}, tmp_path / "t.pt")
    reading = read_well(tmp_path / "t.pt")
    assert reading.columns["own.table"].values == [0, 1, 2]
    assert reading.columns["named.weight"].values == [1.0, 1.0]
    assert_same(reading.columns["model._modules.0._parameters.weight"], model[0].weight)
    assert {what.rpartition(".")[2] for _, what in reading.objects} >= {"Settings", "Named", "Sequential"}


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "subprocess.Popen", "posix.system"])
def test_what_would_run_is_refused(tmp_path, name):
    module, _, function = name.rpartition(".")
    data = b"\x80\x02c" + f"{module}\n{function}\n".encode() + b"X\x02\0\0\0ls\x85R."
    error = read(with_pickle(tmp_path, data)).error
    assert f'the pickle wants "{name}", which has no place in a checkpoint' in error


def test_protocol_4_and_5(tmp_path):
    for protocol in (3, 4, 5):
        torch.save({"a": torch.arange(3)}, tmp_path / "t.pt", pickle_protocol=protocol)
        assert read_well(tmp_path / "t.pt").columns["a"].values == [0, 1, 2]


def test_the_old_format_is_refused(tmp_path):
    torch.save(torch.ones(2), tmp_path / "t.pt", _use_new_zipfile_serialization=False)
    assert (
        "a bare pickle, as torch wrote it before 1.6; it is never loaded here"
        in read(tmp_path / "t.pt").error
    )


def with_pickle(tmp_path, data: bytes):
    torch.save(torch.arange(4), tmp_path / "t.pt")
    rebuilt(tmp_path / "t.pt", lambda name, old: data if name.endswith("data.pkl") else old)
    return tmp_path / "t.pt"


STORAGE = b"((X\x07\0\0\0storagectorch\nLongStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x04tQ"
STORAGE = STORAGE[1:]


def tensor(offset: bytes = b"K\0", sizes: bytes = b"K\x04\x85", strides: bytes = b"K\x01\x85") -> bytes:
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + offset + sizes + strides + b"\x89}tR."


def integer(value: int) -> bytes:
    data = value.to_bytes(8, "little", signed=True)
    return b"\x8a\x08" + data


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the pickle ends too early"),
        (b"\x80\x09.", "an unknown protocol"),
        (b"\x80\x02", "the pickle ends too early"),
        (b"\x80\x02.", "a value that is not there"),
        (b"\x80\x02N0.", "a value that is not there"),
        (b"\x80\x02t.", "a mark that is not there"),
        (b"\x80\x02(N\x85.", "no crash"),
        (b"\x80\x02h\x05.", "has not remembered"),
        (b"\x80\x02q\x05.", "a value that is not there"),
        (b"\x80\x02X\xff\xff\xff\xffabc.", "the pickle ends too early"),
        (b"\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xffabc.", "the pickle ends too early"),
        (b"\x80\x02NNa.", "appends to no list"),
        (b"\x80\x02NNNs.", "sets keys of no dictionary"),
        (b"\x80\x02}(NNNu.", "sets keys of no dictionary"),
        (b"\x80\x02NNb.", "sets attributes of no dictionary"),
        (b"\x80\x02N)R.", "calls something that is not a function"),
        (b"\x80\x02cos\nsystem\n.", 'the pickle wants "os.system"'),
        (b"\x80\x02X\x02\0\0\0osX\x06\0\0\0system\x93.", 'the pickle wants "os.system"'),
        (b"\x80\x02ctorch" + b"x" * 500, "the pickle ends too early"),
        (b"\x80\x02iposix\nsystem\n.", "the instruction 0x69"),
        (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.", "a tensor is not described"),
        (b"\x80\x02NQ.", "a storage is not described"),
        (tensor(sizes=b"K\x05\x85"), "reaches behind the end of its storage of 32 bytes"),
        (tensor(offset=b"K\x01"), "reaches behind the end of its storage of 32 bytes"),
        (tensor(strides=b"K\x02\x85"), "reaches behind the end of its storage of 32 bytes"),
        (tensor(sizes=integer(2**62) + b"\x85", strides=integer(2**62) + b"\x85"), "reaches behind the end"),
        (tensor(sizes=integer(-1) + b"\x85"), "a tensor is not described"),
        (tensor(sizes=b"K\x01K\x02\x86"), "a tensor is not described"),
        (tensor(offset=integer(2**63 - 1)), "reaches behind the end"),
        (
            tensor(sizes=integer(2**31) + integer(2**31) + b"\x86", strides=b"K\0K\0\x86"),
            None,
        ),
        (b"\x80\x02" + b"]" * 100000 + b"a" * 99999 + b".", "nested more than 64 deep"),
        (b"\x80\x02" + b"N" * 5_000_000 + b".", "more than 4 million values"),
        (b"\x80\x02" + b"]" * 17_000_000, "a pickle of more than 16 MiB"),
    ],
)
def test_pickles_that_lie(tmp_path, data, why):
    path = with_pickle(tmp_path, data)
    reading = read(path)
    if why is None:
        assert reading.columns[""].values == [0]  # an expanded scalar
    elif why == "no crash":
        assert reading.columns == {}
    else:
        assert why in reading.error and str(path) in reading.error and "(at byte " in reading.error


def test_shared_lists_do_not_explode(tmp_path):
    # Each list holds the one before it ten times: 10^40 visits if nobody counts.
    data = b"\x80\x02]q\x00"
    for _ in range(40):
        data += b"](" + b"h\x00" * 10 + b"eq\x00"
    assert "more than 4 million values" in read(with_pickle(tmp_path, data + b".")).error


def test_a_missing_storage_is_named(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "t.pt")
    rebuilt(tmp_path / "t.pt", lambda name, data: None if "/data/" in name else data)
    assert 'the tensor "a": its storage "0" is not there' in read(tmp_path / "t.pt").error


def test_a_storage_that_is_too_short_is_named(tmp_path):
    torch.save({"a": torch.ones(2), "b": torch.ones(9)}, tmp_path / "t.pt")
    rebuilt(tmp_path / "t.pt", lambda name, data: data[:-1] if "/data/" in name else data)
    assert (
        'the tensor "a": its shape reaches behind the end of its storage of 7 bytes'
        in read(tmp_path / "t.pt").error
    )


def test_truncated_and_flipped_anywhere(tmp_path):
    torch.save({"a": torch.arange(30), "b": torch.ones(3)}, tmp_path / "t.pt")
    whole = (tmp_path / "t.pt").read_bytes()
    for size in range(0, len(whole), 97):
        assert "(at byte " in read(write(tmp_path / "cut.pt", whole[:size])).error, size
    start = whole.index(b"\x80\x02}")
    for at in range(start, start + 300, 3):
        flipped = bytearray(whole)
        flipped[at] ^= 0x15
        read(write(tmp_path / "flipped.pt", bytes(flipped)))  # any answer, but no crash


def test_pickle_of_python_is_no_checkpoint(tmp_path):
    assert "a bare pickle" in read(write(tmp_path / "t.pt", pickle.dumps({"a": 1}))).error
    assert "neither an archive nor a pickle" in read(write(tmp_path / "t.pt", b"hello")).error
    assert "no data.pkl" in read(write(tmp_path / "t.pt", zip_of({"x": b"1"}))).error


def zip_of(entries: dict) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return buffer.getvalue()
