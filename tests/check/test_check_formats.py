"""`trapline check` on every kind of file that `src/inputs` reads, each written by its own tool."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from checking import TRAPLINE, only_finding, report

np = pytest.importorskip("numpy")
LABELS = np.where(np.arange(1000) == 7, 12, np.arange(1000) % 10)


def _npz(folder: Path) -> Path:
    np.savez(folder / "a.npz", x_train=np.ones((5, 3)), y_train=LABELS)
    return folder / "a.npz"


def _parquet(folder: Path) -> Path:
    pytest.importorskip("pandas").DataFrame({"text": "a", "label": LABELS}).to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def _feather(folder: Path) -> Path:
    pytest.importorskip("polars").DataFrame({"label": LABELS}).write_ipc(folder / "a.feather")
    return folder / "a.feather"


def _data_set(folder: Path) -> Path:
    pytest.importorskip("datasets").Dataset.from_dict({"label": LABELS.tolist()}).save_to_disk(folder / "ds")
    return folder / "ds"


def _torch(folder: Path) -> Path:
    torch = pytest.importorskip("torch")
    torch.save({"labels": torch.tensor(LABELS)}, folder / "a.pt")
    return folder / "a.pt"


def _safetensors(folder: Path) -> Path:
    pytest.importorskip("safetensors.numpy").save_file({"labels": LABELS}, folder / "a.safetensors")
    return folder / "a.safetensors"


def _csv(folder: Path) -> Path:
    pytest.importorskip("pandas").DataFrame({"label": LABELS}).to_csv(folder / "a.tsv", sep="\t")
    return folder / "a.tsv"


WRITERS = {
    "npz": _npz, "parquet": _parquet, "feather": _feather, "data set": _data_set, "torch": _torch,
    "safetensors": _safetensors, "tsv": _csv,
}  # fmt: skip


@pytest.mark.parametrize("kind", WRITERS)
def test_the_same_finding(tmp_path: Path, kind: str) -> None:
    path = WRITERS[kind](tmp_path)
    report("labels", path, "--classes", 13, exit_code=0)
    finding = only_finding("labels", path, "--classes", 10)
    assert finding["element"]["index"] == [7]
    assert {key: finding["element"][key] for key in ("value", "bad", "total", "min", "max")} == {
        "value": 12, "bad": 1, "total": 1000, "min": 0, "max": 12,
    }  # fmt: skip
    assert finding["values"] == [{"value": 12, "count": 1}]
    assert finding["classes"] == {"seen": 11, "expected": 10}


def test_parquet_with_a_program_that_was_found_on_path(tmp_path: Path) -> None:
    _parquet(tmp_path)
    path = f"{Path(TRAPLINE).parent}:{os.environ['PATH']}"
    command = ["trapline", "check", "labels", "a.parquet", "--classes", "3", "--format", "json"]
    done = subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
    )
    assert (done.returncode, len(json.loads(done.stdout)["findings"])) == (1, 1), done.stderr


def test_missing_values_of_parquet(tmp_path: Path) -> None:
    frame = pytest.importorskip("pandas").DataFrame({"label": [0, None, 2]}).astype("Int64")
    frame.to_parquet(tmp_path / "a.parquet")
    finding = only_finding("labels", tmp_path / "a.parquet", "--classes", 3)
    assert finding["element"]["index"] == [1]
    assert finding["element"]["bad"] == 1


def test_a_tree_of_pictures_names_its_classes(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name in ("cat", "dog"):
        (tmp_path / "train" / name).mkdir(parents=True)
        image.new("RGB", (4, 4)).save(tmp_path / "train" / name / "1.jpg")
    notes = report("dataset", tmp_path, exit_code=0)["notes"]
    assert notes == [
        "guessed: column 'label' holds labels (2 in 1 file, 0 to 1), "
        "held against the 2 classes that the data set names"
    ]
    assert "train/dog" in only_finding("labels", tmp_path, "--classes", 1)["evidence"][0]["source"]


def test_masks(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    mask = np.zeros((8, 8), dtype=np.uint8)
    mask[0, 0], mask[3, 4] = 1, 255
    image.fromarray(mask).save(tmp_path / "mask.png")
    finding = only_finding("labels", tmp_path / "mask.png", "--classes", 2)
    assert finding["element"]["index"] == [3, 4]
    assert "255 looks like an ignore label" in finding["summary"]
    report("labels", tmp_path / "mask.png", "--classes", 2, "--ignore-index", 255, exit_code=0)
