"""trapline.check_*: the same verdict whoever holds the numbers, without a copy (requirement C4)."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable

import pytest
import trapline

np = pytest.importorskip("numpy")
LABELS = [0, 1, 2, 9, 4, 12, 3]


def _arrow(values: list) -> Any:
    return pytest.importorskip("pyarrow").array(values)


def _chunked(values: list) -> Any:
    return pytest.importorskip("pyarrow").chunked_array([values[:3], values[3:]])


def _table(values: list) -> Any:
    return pytest.importorskip("pyarrow").table({"label": values})


def _torch(values: list) -> Any:
    return pytest.importorskip("torch").tensor(values)


def _torch_strided(values: list) -> Any:
    torch = pytest.importorskip("torch")
    return torch.stack([torch.tensor(values), torch.full((len(values),), 99)], 1)[:, 0]


class _DLPack:
    """Nothing but the protocol."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self) -> Any:
        return self.x.__dlpack__()

    def __dlpack_device__(self) -> tuple:
        return self.x.__dlpack_device__()


HOLDERS: dict[str, Callable[[list], Any]] = {
    "list": list,
    "numpy": np.array,
    "numpy-int32": lambda values: np.array(values, dtype=np.int32),
    "numpy-uint16": lambda values: np.array(values, dtype=np.uint16),
    "numpy-big-endian": lambda values: np.array(values, dtype=">i8"),
    "numpy-strided": lambda values: np.stack([values, values], 1)[:, 1],
    "numpy-float": lambda values: np.array(values, dtype=np.float32),
    "array": lambda values: __import__("array").array("h", values),
    "torch": _torch,
    "torch-strided": _torch_strided,
    "arrow": _arrow,
    "arrow-sliced": lambda values: _arrow([50, *values, 60]).slice(1, len(values)),
    "arrow-chunked": _chunked,
    "arrow-table": _table,
    "pandas": lambda values: pytest.importorskip("pandas").Series(values),
    "pandas-nullable": lambda values: pytest.importorskip("pandas").Series(values, dtype="Int64"),
    "polars": lambda values: pytest.importorskip("polars").Series(values),
    "polars-frame": lambda values: pytest.importorskip("polars").DataFrame({"label": values}),
    "dlpack": lambda values: _DLPack(np.array(values)),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_labels(holder: str) -> None:
    data = HOLDERS[holder](LABELS)
    trapline.check_labels(data, 13)
    with pytest.raises(trapline.DeviceAssertError) as raised:
        trapline.check_labels(data, 10)
    finding = raised.value.finding
    assert str(raised.value) == finding["summary"]
    element = {key: value for key, value in finding["element"].items() if key != "index"}
    assert element == {"value": 12, "bad": 1, "total": 7, "min": 0, "max": 12}
    assert finding["element"]["index"] == [5]
    assert finding["valid"]["text"] == "[0, 10) or -100"
    assert finding["classes"] == {"seen": 7, "expected": 10, "missing": [5, 6, 7, 8]}


def test_ignore_index() -> None:
    trapline.check_labels([0, -100], 2)
    trapline.check_labels([0, 255], 2, ignore_index=255)
    with pytest.raises(trapline.DeviceAssertError, match=r"labels\[1\] is -100"):
        trapline.check_labels([0, -100], 2, ignore_index=None)


def test_shapes_give_the_position() -> None:
    labels = np.zeros((4, 5, 6), dtype=np.int64)
    labels[2, 3, 4] = 7
    for data in (labels, np.asfortranarray(labels), labels[:, ::-1][:, ::-1]):
        with pytest.raises(trapline.DeviceAssertError) as raised:
            trapline.check_labels(data, 7)
        assert raised.value.finding["element"]["index"] == [2, 3, 4]
        assert raised.value.finding["tensor"] == {"shape": [4, 5, 6], "dtype": "int64"}


@pytest.mark.parametrize("holder", ["arrow", "arrow-sliced", "arrow-chunked", "pandas-nullable", "polars"])
def test_missing_values(holder: str) -> None:
    data = HOLDERS[holder]([1, 2, 3, None, 2, None, 1])
    with pytest.raises(trapline.DeviceAssertError, match=r"labels\[3\] is nan") as raised:
        trapline.check_labels(data, 5)
    assert raised.value.finding["code"] == "TL108"
    assert raised.value.finding["element"]["bad"] == 2


def test_lists_of_ids() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"n": [1, 2, 3], "ids": [[1, 2], [], [3, 50, 4]]})
    trapline.check_ids(table, 51, positions=3, column="ids")
    with pytest.raises(trapline.DeviceAssertError) as raised:
        trapline.check_ids(table, 50, column="ids")
    assert raised.value.finding["element"]["index"] == [2, 1]
    with pytest.raises(trapline.DeviceAssertError, match="the sequence of 3 positions is too long") as raised:
        trapline.check_ids(table, 51, positions=2, column="ids")
    assert raised.value.finding["code"] == "TL104"
    with pytest.raises(TypeError, match="which column is meant: name one of n, ids"):
        trapline.check_ids(table, 51)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_finite(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(300, 20, dtype=getattr(torch, dtype), requires_grad=True)
    trapline.check_finite(x)
    with torch.no_grad():
        x[7, 5] = float("-inf")
    with pytest.raises(trapline.DeviceAssertError, match=r"check_finite: values\[7, 5\] is -inf") as raised:
        trapline.check_finite(x)
    assert raised.value.finding["code"] == "TL109"


def test_probs() -> None:
    trapline.check_probs([[0.5, 0.5], [0.0, 3.0]])
    with pytest.raises(trapline.DeviceAssertError, match="row 1 of the probabilities has sum 0"):
        trapline.check_probs([[0.5, 0.5], [0.0, 0.0]])
    with pytest.raises(trapline.DeviceAssertError, match=r"probs\[0, 1\] is -0.5"):
        trapline.check_probs([[0.5, -0.5]])


def test_what_is_no_data() -> None:
    with pytest.raises(TypeError, match="holds no numbers that can be read in place"):
        trapline.check_labels(object(), 3)
    with pytest.raises(TypeError, match="elements of dtype int64: pass floating point numbers"):
        trapline.check_finite([1, 2])
    with pytest.raises(TypeError, match="None holds no numbers"):
        trapline.check_labels(None, 5)
    with pytest.raises(TypeError, match="unequal lengths"):
        trapline.check_labels([[[1]], [[1], [2]]], 3)
    with pytest.raises(ValueError, match="0 classes or rows"):
        trapline.check_labels([1], 0)
    trapline.check_labels([], 3)
    trapline.check_labels(np.zeros((0, 5), dtype=np.int64), 3)


def test_importing_takes_neither_torch_nor_numpy() -> None:
    program = (
        "import sys, trapline; trapline.check_labels([1], 3); print(*{'torch', 'numpy'} & {*sys.modules})"
    )
    path = str(Path(trapline.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {path!r}); {program}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("\n", 0), done.stderr


def test_the_gil_is_released() -> None:
    """A thread that counts goes on while another checks 400 MB."""
    data = np.zeros(50_000_000, dtype=np.int64)
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    sys.setswitchinterval(10)  # nobody is made to hand over the GIL
    try:
        thread.start()
        before = counted
        trapline.check_labels(data, 3)
        after = counted
    finally:
        sys.setswitchinterval(0.005)
        done.set()
        thread.join()
    assert after > before


def test_assertions_for_tests() -> None:
    from trapline import testing

    testing.assert_labels([0, 1], 2)
    testing.assert_ids([0, 1], 2)
    testing.assert_finite([0.5])
    testing.assert_probs([0.5, 0.5])
    with pytest.raises(AssertionError, match=r"\[TL101\] check_labels: labels\[1\] is 2(.|\n)*help: "):
        testing.assert_labels([0, 2], 2)


def test_rows_of_unequal_lengths() -> None:
    trapline.check_ids([[1, 2], [], [0, 1, 2]], 3, positions=3)
    with pytest.raises(trapline.DeviceAssertError, match=r"ids\[2, 1\] is 9") as raised:
        trapline.check_ids([[1, 2], [], [0, 9, 2]], 3)
    assert raised.value.finding["element"]["index"] == [2, 1]
    with pytest.raises(trapline.DeviceAssertError) as raised:
        trapline.check_ids([[1, 2], [], [0, 1, 2]], 3, positions=2)
    assert raised.value.finding["code"] == "TL104"


def test_what_a_mask_hides_is_no_data() -> None:
    trapline.check_labels(np.ma.masked_equal([0, 1, 255, 2], 255), 3)
    with pytest.raises(trapline.DeviceAssertError, match="is 9"):
        trapline.check_labels(np.ma.masked_equal([0, 9, 255, 2], 255), 3)
