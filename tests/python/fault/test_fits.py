"""An index that was made for another tensor of the program's."""

import pytest
from conftest import make_violation

torch = pytest.importorskip("torch")
from trapline._fault.data import fits  # noqa: E402


def gathered(source, index, dim=0):
    arguments = {"self": source, "dim": dim, "index": index}
    violation = make_violation("index_select.index", index, 0, source.shape[dim], arguments)
    return fits.fits_facts(violation)


def test_the_cloud_that_has_all_the_neighbours():
    points, centres = torch.rand(40, 3), torch.rand(10, 3)
    assert gathered(centres, torch.tensor([3, 39])) == {"name": "points", "shape": [40, 3]}
    assert points.shape == (40, 3)


def test_none_is_large_enough_or_alike():
    points, features, ids = torch.rand(40, 3), torch.rand(90, 8), torch.arange(120).reshape(40, 3)
    assert gathered(torch.rand(10, 3), torch.tensor([3, 40])) is None
    assert gathered(torch.rand(10, 4), torch.tensor([3, 12])) is None
    assert points.shape[0] == ids.shape[0] < features.shape[0]


def test_two_would_fit():
    first, second = torch.rand(40, 3), torch.rand(41, 3)
    assert gathered(torch.rand(10, 3), torch.tensor([3, 12])) is None
    assert first.shape != second.shape


def test_a_negative_index_fits_none():
    points = torch.rand(40, 3)
    assert gathered(torch.rand(10, 3), torch.tensor([-1, 12])) is None
    assert points.shape[0] == 40


def test_what_goes_with_the_index_element_by_element():
    logp, alpha = torch.rand(8), torch.rand(4)
    assert gathered(alpha, torch.tensor([0, 4, 1, 2, 3, 0, 1, 2])) is None
    assert logp.shape == (8,)


def test_a_models_result_and_data_are_not_alike():
    batch = torch.rand(5, 6)
    scores = torch.nn.Linear(6, 4)(batch)
    assert gathered(scores, torch.tensor([[3], [4], [0], [1], [2]]), dim=1) is None
    assert gathered(scores.detach(), torch.tensor([[3], [4], [0], [1], [2]]), dim=1)["name"] == "batch"


def test_a_table_of_pairs_is_no_shorter_list():
    features = torch.rand(8, 24)
    assert gathered(torch.rand(8, 8), torch.tensor([3, 22]), dim=1) is None
    assert features.shape == (8, 24)


def test_what_the_same_line_indexed_before(monkeypatch):
    """A layer that is called twice, the second time with what was pooled."""
    index = torch.tensor([0, 3, 15, 16, 39, 7, 7, 2])
    line, other = (compile("x", "net.py", "exec"), 8), (compile("y", "net.py", "exec"), 8)

    def call(shape, most=39, at=line):
        given = {"name": "index", "shape": [8], "dtype": "int64", "min": 0, "max": most}
        own = {"name": "self", "shape": shape, "dtype": "float32", "min": None, "max": None}
        return {"op": "aten::index_select", "args": [own, given], "frames": [at]}

    def asked(*calls):
        monkeypatch.setattr(fits.recorded, "history", lambda: list(calls))
        arguments = {"self": torch.rand(16, 3), "dim": 0, "index": index}
        violation = make_violation("index_select.index", index, 0, 16, arguments, frames=[line])
        return fits.fits_facts({**violation, "op": "aten::index_select"})

    assert asked(call([40, 3])) == {"shape": [40, 3]}
    assert asked(call([40, 3]), call([16, 3])) == {"shape": [40, 3]}, "the failing call is the last"
    assert asked(call([40, 3], at=other)) is None
    assert asked(call([40, 3], most=38)) is None
