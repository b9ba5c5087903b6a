"""Where the bad elements lie, which values there are, and the lines around the origin."""

from __future__ import annotations

import sys

import conftest
import torch
from trapline._fault import violation as violations
from trapline._fault.data import spread
from trapline._fault.program import frames
from trapline._library import capi, diagnose


def scan_of(lo, hi, also=None):
    return {"lo": lo, "hi": hi, "also": also, "bad": 1, "total": 1, "first": 0, "value": 0, "is_float": False}


def strip(values, lo, hi):
    return spread.strip(torch.as_tensor(values), scan_of(lo, hi), capi.PREDICATE_INDEX)


def histogram(values, lo=0, hi=0, also=None, predicate=capi.PREDICATE_INDEX):
    return spread.histogram(torch.as_tensor(values), scan_of(lo, hi, also), predicate)


def test_a_short_argument_has_a_cell_for_each_element():
    assert strip([0, 9, 1, -1], 0, 4) == [0, 1, 0, 1]


def test_a_long_argument_is_cut_into_64_stretches():
    ids = torch.zeros(1000, dtype=torch.int64)
    ids[990:] = 7
    found = strip(ids, 0, 4)
    assert len(found) == 64 and found[-1] == 10 and sum(found) == 10
    for place in (0, 15, 16, 500, 999):  # the stretch that the page names
        ids = torch.zeros(1000, dtype=torch.int64)
        ids[place] = 7
        assert strip(ids, 0, 4).index(1) == place * 64 // 1000


def test_what_is_not_contiguous_is_read_in_row_major_order():
    ids = torch.tensor([[0, 9], [0, 0]]).t()
    assert strip(ids, 0, 4) == [0, 0, 1, 0]


def test_integers_are_counted_over_what_is_valid():
    found = histogram([0, 0, 3, 4, 9, -1, -100, -100], 0, 4, also=-100)
    assert found == {"low": 0, "high": 4, "counts": [2, 0, 0, 1], "below": 1, "above": 2, "also": 2}


def test_bins_of_many_integers_have_one_width():
    found = histogram([*list(range(195)), 195], 0, 195)
    assert found["counts"] == [5] * 39 and found["high"] == 195 and found["above"] == 1
    found = histogram(list(range(197)), 0, 197)
    assert len(found["counts"]) <= 40 and sum(found["counts"]) == 197 and found["high"] >= 197


def test_probabilities_are_counted_over_the_unit_interval():
    found = histogram([0.0, 0.5, 1.0, 1.5, -0.5, float("nan")], predicate=capi.PREDICATE_UNIT_INTERVAL)
    assert (found["low"], found["high"], found["below"], found["above"], found["not_finite"]) == (
        0,
        1,
        1,
        1,
        1,
    )
    assert sum(found["counts"]) == 3 and found["counts"][0] == 1 and found["counts"][-1] == 1


def test_other_numbers_are_counted_from_the_least_to_the_greatest():
    found = histogram([2.0, 4.0, float("inf")], predicate=capi.PREDICATE_NON_NEGATIVE)
    assert (found["low"], found["high"], found["not_finite"], sum(found["counts"])) == (2.0, 4.0, 1, 2)
    assert histogram([float("nan")] * 3)["not_finite"] == 3
    assert sum(histogram([5.0, 5.0])["counts"]) == 2


def test_nothing_is_counted_where_there_is_nothing_to_count():
    assert histogram(torch.empty(0, dtype=torch.int64), 0, 4) is None
    assert histogram([1, 2], 0, 0) is None  # an index into nothing
    assert histogram([True, False]) is None
    assert histogram(torch.tensor([1, 2], dtype=torch.uint64), 0, 4) is None
    assert strip(torch.empty(0, dtype=torch.int64), 0, 4) is None


def test_a_finding_carries_them_and_the_lines_around_the_origin():
    target = torch.tensor([0, 1, 9])
    # before
    found = conftest.make_violation("nll_loss_forward.target", target, 0, 4, {"self": torch.zeros(3, 4)})
    # after
    finding = diagnose.diagnose(violations.collect(found, []))
    assert finding["element"]["strip"] == [0, 0, 1]
    assert finding["element"]["histogram"]["above"] == 1
    assert finding["origin"]["before"][-1].strip() == "# before"
    assert finding["origin"]["after"][0].strip() == "# after"
    assert "before" not in finding["stack"][-1]


def test_lines_of_a_huge_file_are_cut_and_none_is_read_where_the_line_is_not_known():
    code = sys._getframe().f_code
    frame = {"file": code.co_filename, "line": 1, "code": "x" * 10}
    assert frames.with_context(frame)["before"] == []
    assert "before" not in frames.with_context({"file": "gone.py", "line": 3, "code": ""})
    assert frames.with_context(None) is None
