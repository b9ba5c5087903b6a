"""`trapline check` on HDF5 files: the finding has the file, the data set, the row and the value."""

import numpy as np
import pytest
from checking import BUILD, only_finding, report, run

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.skipif(
    not (BUILD / "lib" / "libtrapline_hdf5.so").exists(), reason="built without libhdf5"
)


@pytest.fixture
def signs(tmp_path):
    """A file that can be written to, with labels 0 to 9 and one 12."""
    labels = np.arange(1000) % 10
    labels[7] = 12
    with h5py.File(tmp_path / "signs.h5", "w") as file:
        file["train/images"] = np.zeros((1000, 4, 4), np.uint8)
        file.create_dataset("train/labels", data=labels, chunks=(64,), compression="gzip")
    return tmp_path / "signs.h5"


def test_a_label_out_of_range(signs):
    report("labels", signs, "--column", "/train/labels", "--classes", 13, exit_code=0)
    for words in (["labels", signs, "--column", "/train/labels"], ["dataset", signs]):
        finding = only_finding(*words, "--classes", 10)
        assert finding["code"] == "TL101"
        assert finding["argument"] == "/train/labels"
        assert finding["element"]["index"] == [7] and finding["element"]["value"] == 12
        assert finding["element"]["bad"] == 1 and finding["element"]["total"] == 1000
        assert finding["evidence"][0]["source"] == str(signs)


def test_classes_that_an_enumeration_names(tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as file:
        kind = h5py.enum_dtype({"cat": 0, "dog": 1, "eel": 2}, basetype="i1")
        labels = np.arange(60, dtype="i1") % 3
        file.create_dataset("label", data=labels, dtype=kind)
    report("dataset", tmp_path / "t.h5", exit_code=0)
    labels[40] = 5
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file.create_dataset("label", data=labels, dtype=kind)
    finding = only_finding("dataset", tmp_path / "t.h5")
    assert (finding["element"]["index"], finding["element"]["value"]) == ([40], 5)
    assert finding["valid"]["max"] == 2


def test_not_finite(tmp_path):
    values = np.ones((50, 3), np.float32)
    values[20, 1] = np.nan
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["model/weights"] = values
    finding = only_finding("finite", tmp_path / "t.h5")
    assert (finding["code"], finding["argument"], finding["element"]["index"]) == (
        "TL109",
        "/model/weights",
        [20, 1],
    )


def test_what_cannot_be_read_is_no_pass(signs):
    with h5py.File(signs, "a") as file:
        file["train/labels"][7] = 2
        file.create_dataset("val/labels", data=np.arange(1000) % 10, chunks=(500,), compression="lzf")
    done = run("dataset", signs, "--classes", 10)
    assert done.returncode == 2
    assert (
        f'trapline: cannot read {signs}: "/val/labels": it is packed by the filter 32000 "lzf"' in done.stderr
    )
    report("labels", signs, "--column", "/train/labels", "--classes", 10, exit_code=0)


def test_in_a_folder(signs):
    finding = only_finding("dataset", signs.parent, "--classes", 10)
    assert (finding["element"]["index"], finding["evidence"][0]["source"]) == ([7], str(signs))
