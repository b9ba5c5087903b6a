"""Numbers of a calendar that count from 1."""

import ast

import pytest
from trapline._fault.data import calendars

READS = """
from datetime import date


def label(day: date) -> int:
    return {}
"""
OF_WEEK = {"value": 7, "lo": 0, "hi": 7, "min": 1, "max": 7}
OF_SEASONS = {"value": 4, "lo": 0, "hi": 4, "min": 0, "max": 4}


@pytest.fixture
def reads(monkeypatch):
    def of(*expressions):
        trees = [("a.py", ast.parse(READS.format(one))) for one in expressions]
        monkeypatch.setattr(calendars.texts, "user_trees", lambda: iter(trees))

    return of


def test_the_days_of_a_week(reads):
    reads("day.isoweekday()")
    found = calendars.calendar_facts(OF_WEEK)
    assert found == {"text": "day.isoweekday()", "file": "a.py", "line": 6, "last": 7}
    assert calendars.calendar_facts({**OF_WEEK, "min": 0}) is None  # a 0 was seen
    assert calendars.calendar_facts({**OF_WEEK, "hi": 6, "value": 6}) is None


def test_groups_of_months(reads):
    reads("day.month // 3")
    assert calendars.calendar_facts(OF_SEASONS)["by"] == 3
    assert calendars.calendar_facts({**OF_SEASONS, "hi": 6, "value": 6, "max": 6}) is None


@pytest.mark.parametrize(
    "text", ["day.isoweekday() - 1", "day.isoweekday() % 7", "day.weekday()", "f(day.isoweekday())"]
)
def test_what_begins_at_0_or_is_another_number(reads, text):
    reads(text)
    assert calendars.calendar_facts(OF_WEEK) is None


def test_the_same_numbers_as_an_array(reads):
    reads("day.dt.month.astype(int).values")
    assert calendars.calendar_facts({"value": 12, "lo": 0, "hi": 12, "min": 1, "max": 12})["last"] == 12


def test_several_places(reads):
    reads("day.isoweekday()", "day.isoweekday()")
    assert calendars.calendar_facts(OF_WEEK) is None
