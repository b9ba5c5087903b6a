"""The examples of the cause pages, without a GPU: the broken one raises, the fixed one does not."""

import re
import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "causes" / "examples"
RAISES = {
    "label_out_of_range": (IndexError, "Target 10 is out of bounds"),
    "num_classes_mismatch": (IndexError, "Target 2 is out of bounds"),
    "embedding_index_out_of_range": (IndexError, "index out of range in self"),
    "position_index_out_of_range": (IndexError, "index out of range in self"),
    "index_out_of_range": (RuntimeError, "index -1 is out of bounds for dimension 1 with size 5"),
    "loss_input_out_of_range": (RuntimeError, "all elements of input should be between 0 and 1"),
    "invalid_probability": (RuntimeError, "probability tensor contains either `inf`, `nan` or element < 0"),
    "nan_to_index": (IndexError, "is out of bounds for dimension 0 with size 8"),
    "shape_mismatch": (RuntimeError, "mat1 and mat2 shapes cannot be multiplied"),
    "dtype_mismatch": (RuntimeError, "Long"),
    "non_finite_value": (RuntimeError, "probability tensor contains either `inf`, `nan` or element < 0"),
    "incomplete_checkpoint": (RuntimeError, 'Missing key(s) in state_dict: "1.weight", "1.bias"'),
}


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        f"{slug}_{kind}" for slug in RAISES for kind in ("broken", "fixed")
    }


@pytest.mark.parametrize("slug", RAISES)
def test_broken(slug: str) -> None:
    kind, message = RAISES[slug]
    torch.manual_seed(0)
    with pytest.raises(kind) as caught:
        runpy.run_path(str(EXAMPLES / f"{slug}_broken.py"))
    assert message in str(caught.value)


@pytest.mark.parametrize("slug", RAISES)
def test_fixed(slug: str) -> None:
    torch.manual_seed(0)
    runpy.run_path(str(EXAMPLES / f"{slug}_fixed.py"))


@pytest.mark.parametrize("slug", RAISES)
def test_no_index_is_clamped(slug: str) -> None:
    """Another element would be read, and nothing would tell: the help calls that harmful."""
    page = (EXAMPLES.parent / "text" / f"{slug}.md").read_text(encoding="utf-8")
    fixed = (EXAMPLES / f"{slug}_fixed.py").read_text(encoding="utf-8")
    clamped = re.compile(r"\b(best|index|ids|bucket|labels)\.clamp\(|\.clamp\([^)]*\)\.long\(\)")
    assert not clamped.search(page)
    assert not clamped.search(fixed)
