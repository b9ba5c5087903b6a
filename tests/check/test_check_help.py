"""Help that fits what the values are: state of optimizers, weights of Keras, boxes, a -1 that was stored."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checking import BUILD, only_finding

torch = pytest.importorskip("torch")


def help_of(*words: Any) -> str:
    return " | ".join(only_finding(*words)["fix"])


def optimizer_state(value: float) -> dict:
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    state["state"][0]["exp_avg"][1, 2] = value
    return state


@pytest.mark.parametrize("command", ["finite", "dataset"])
@pytest.mark.parametrize("key", ["optimizer", "optim", "optimizer_state_dict", None])
def test_nan_in_the_state_of_an_optimizer(tmp_path: Path, command: str, key: Any) -> None:
    state = optimizer_state(float("nan"))
    torch.save({"epoch": 3, key: state} if key else state, tmp_path / "last.pt")
    told = help_of(command, tmp_path / "last.pt")
    assert told.startswith("take an earlier checkpoint: with this state the next step makes the weights NaN")
    assert "begin with a new optimizer" in told and "error_if_nonfinite=True" in told
    assert "rows" not in told and "nan_to_num" not in told


def test_what_other_optimizers_call_their_state(tmp_path: Path) -> None:
    torch.save({"state": {0: {"sum": torch.tensor([1.0, float("inf")])}}}, tmp_path / "a.pt")
    assert "new optimizer" in help_of("finite", tmp_path / "a.pt")
    torch.save({"model_state_dict": {"scale": torch.tensor([1.0, float("inf")])}}, tmp_path / "b.pt")
    assert "training does not recover from a weight" in help_of("finite", tmp_path / "b.pt")
    torch.save({"state": torch.tensor([1.0, float("inf")])}, tmp_path / "c.pt")  # of a game, say
    assert "nan_to_num" in help_of("finite", tmp_path / "c.pt")


@pytest.mark.skipif(not (BUILD / "lib" / "libtrapline_hdf5.so").exists(), reason="built without libhdf5")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model_weights/dense/dense/kernel:0", "keras.callbacks.TerminateOnNaN()"),
        ("layers/dense/vars/0", "keras.callbacks.TerminateOnNaN()"),
        ("optimizer_weights/Adam/m/dense/kernel:0", "new optimizer"),
        ("optimizer/vars/2", "new optimizer"),
    ],
)
def test_nan_in_what_keras_keeps(tmp_path: Path, name: str, words: str) -> None:
    h5py = pytest.importorskip("h5py")
    weight = np.ones((3, 4), np.float32)
    weight[1, 1] = np.nan
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file[name] = weight
    told = help_of("finite", tmp_path / "m.h5")
    assert told.startswith("take an earlier checkpoint") and words in told
    assert "rows" not in told and "nan_to_num" not in told


def test_a_column_called_weight_is_data(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("weight,label\n1.5,0\ninf,1\n2.5,1\n")
    told = help_of("finite", tmp_path / "t.csv", "--column", "weight")
    assert "drop or fill the rows" in told and "checkpoint" not in told


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_a_stored_minus_one(tmp_path: Path, dtype: str) -> None:
    mark = int(np.iinfo(dtype).max)
    np.save(tmp_path / "labels.npy", np.array([0, 1, 2, mark, 1] * 20, dtype))
    finding = only_finding("labels", tmp_path / "labels.npy", "--classes", 3)
    assert f"{mark} looks like an ignore label" in finding["summary"]
    assert f"{mark} in {dtype} can also be a -1 that was stored there" in " | ".join(finding["fix"])
    assert finding["tensor"]["dtype"] == dtype
    np.save(tmp_path / "labels.npy", np.array([0, 1, 2, mark - 1, 1] * 20, dtype))
    assert "-1" not in help_of("labels", tmp_path / "labels.npy", "--classes", 3).replace("-100", "")


def coco(path: Path, *used: int) -> Path:
    content = {
        "annotations": [{"id": i, "category_id": one} for i, one in enumerate(used)],
        "categories": [{"id": i, "name": f"c{i}"} for i in (1, 2)],
    }
    path.write_text(json.dumps(content))
    return path


def test_boxes_have_no_label_to_ignore(tmp_path: Path) -> None:
    finding = only_finding("dataset", coco(tmp_path / "t.json", 1, 2, -1, 2, 1, 1))
    told = " | ".join(finding["fix"])
    assert "COCO annotations have no label to ignore" in finding["summary"]
    assert "take the object out" in told and '"iscrowd": 1' in told
    assert "ignore_index" not in told and "-100" not in finding["valid"].get("text", "")
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "0.txt").write_text("0 .5 .5 .1 .1\n-1 .5 .5 .1 .1\n1 .5 .5 .1 .1\n")
    finding = only_finding("labels", tmp_path / "labels", "--classes", 2)
    told = " | ".join(finding["fix"])
    assert "YOLO annotations have no label to ignore" in finding["summary"]
    assert "take the object out" in told and "iscrowd" not in told and "ignore_index" not in told
