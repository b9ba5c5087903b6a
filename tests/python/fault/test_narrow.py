"""Numbers that a narrow type has made negative."""

import pytest
from trapline._fault.data import casts

SCAN = {"value": -113, "min": -128, "max": 120, "lo": 0, "hi": 180}


@pytest.fixture
def speaks(monkeypatch):
    def of(text):
        monkeypatch.setattr(casts.texts, "user_files", lambda: ["shrink.py"])
        monkeypatch.setattr(casts.texts.source, "text", lambda file: text)

    return of


@pytest.mark.parametrize("text", ["frame.astype(np.int8)", "x.to(torch.int8)", 'astype("int8")'])
def test_the_type_that_the_program_speaks_of(speaks, text):
    speaks(text)
    assert casts.narrow_facts(SCAN) == "int8"
    assert casts.narrow_facts({**SCAN, "hi": 120}) is None  # all places fit
    assert casts.narrow_facts({**SCAN, "max": 150}) is None  # none of 8 bits
    assert casts.narrow_facts({**SCAN, "min": -1}) is None  # a mark


@pytest.mark.parametrize("text", ["x.astype(np.uint8)", "x.astype(np.int16)", "x.long()"])
def test_other_types_say_nothing(speaks, text):
    speaks(text)
    assert casts.narrow_facts(SCAN) is None


def test_sixteen_bits(speaks):
    speaks("x.astype(np.int16)")
    assert casts.narrow_facts({"min": -30000, "max": 32000, "hi": 40000}) == "int16"
