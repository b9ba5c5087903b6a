"""`trapline check ids` and `trapline check finite` (requirements C2, C3)."""

import json
from pathlib import Path

import pytest
from checking import only_finding, report, run

np = pytest.importorskip("numpy")


def test_ids_beyond_the_table(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    rows = [{"input_ids": [1, 2, 3, 49]}, {"input_ids": []}, {"input_ids": [5, 50, 7]}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report("ids", path, "--rows", 51, "--positions", 4, exit_code=0)
    finding = only_finding("ids", path, "--rows", 50)
    assert finding["code"] == "TL103"
    assert finding["element"]["index"] == [2, 1]
    assert finding["element"]["value"] == 50
    assert finding["evidence"] == [{"source": str(path), "line": 3, "text": "input_ids[2, 1] is 50"}]


def test_rows_that_are_too_long(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    lengths = [3, 600, 512, 700]
    path.write_text("".join(json.dumps({"input_ids": [1] * n}) + "\n" for n in lengths))
    finding = only_finding("ids", path, "--rows", 50, "--positions", 512)
    assert finding["code"] == "TL104"
    assert finding["element"]["index"] == [1]
    assert (finding["element"]["bad"], finding["element"]["total"]) == (2, 4)
    assert "the sequence of 700 positions is too long" in finding["summary"]


def test_labels_in_the_place_of_ids(tmp_path: Path) -> None:
    ids = np.ones((4, 8), dtype=np.int64)
    ids[2, 5] = -100
    np.save(tmp_path / "ids.npy", ids)
    finding = only_finding("ids", tmp_path / "ids.npy", "--rows", 50)
    assert "-100 is the ignore label of losses" in finding["summary"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_finite(tmp_path: Path, dtype: str, value: str) -> None:
    x = np.ones((300, 200), dtype=dtype)
    np.save(tmp_path / "x.npy", x)
    report("finite", tmp_path / "x.npy", exit_code=0)
    x[7, 11] = float(value)
    np.save(tmp_path / "x.npy", x)
    finding = only_finding("finite", tmp_path / "x.npy")
    assert finding["code"] == "TL109"
    assert finding["element"]["index"] == [7, 11]
    assert finding["element"]["value"] == value
    assert finding["values"] == [{"value": value, "count": 1}]


def test_finite_names_the_tensor(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    state = {"a.weight": torch.ones(4, 5), "b.bias": torch.ones(6, dtype=torch.bfloat16)}
    state["b.bias"][3] = float("inf")
    safetensors.save_file(state, str(tmp_path / "m.safetensors"))
    finding = only_finding("finite", tmp_path / "m.safetensors")
    assert finding["argument"] == "b.bias"
    assert finding["tensor"] == {"shape": [6], "dtype": "bfloat16"}
    assert finding["summary"].endswith("m.safetensors: b.bias[3] is inf: 1 of 6 values is not finite")


def test_finite_of_integers_is_a_mistake(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.arange(3))
    done = run("finite", tmp_path / "y.npy")
    assert done.returncode == 2
    assert "holds no floating point numbers" in done.stderr
