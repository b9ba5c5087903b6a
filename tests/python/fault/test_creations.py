"""Where the program says how large a layer is: by the text of the program, and silent where that is open."""

from __future__ import annotations

import ast
import importlib
import os
import sys
import types
from pathlib import Path
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from trapline._fault.program import computed, creations, decided, texts  # noqa: E402

MODEL = """
import torch
from torch import nn
from settings_of_shop import WIDTH

N_KINDS = 7
SIZES = [2, 3]
DAY = 24 * 3600
N_HOURS = DAY // 3600
N_LONG = len(["an expression that is too long to be read as a part of a line", "b", "c"])


class Mix(nn.Module):
    def __init__(self, n, width):
        super().__init__()
        self.down = nn.Parameter(torch.randn(n, width) * 0.02)


class Lone(nn.Module):
    def __init__(self, levels=4):
        super().__init__()
        self.level = nn.Embedding(levels, WIDTH)


class Tuned(nn.Module):
    def __init__(self, grades=6, ranks=3):
        super().__init__()
        self.grade = nn.Embedding(grades, WIDTH)
        self.rank = nn.Embedding(ranks, WIDTH)


class Place(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.step = nn.Embedding(steps, WIDTH)


class Reads(nn.Module):
    def __init__(self, n=9):
        super().__init__()
        self.place = Place(n)


class Writes(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.place = Place(n)


class Shop(nn.Module):
    def __init__(self, cfg, classes, moods=4):
        super().__init__()
        self.cols = nn.ModuleList([nn.Embedding(n, WIDTH) for n in SIZES])
        self.tok = nn.Embedding(cfg["tokens"], WIDTH)
        self.wide = nn.Embedding(N_KINDS + 2, WIDTH)
        self.mix = Mix(N_KINDS, WIDTH)
        self.mood = nn.Embedding(moods, WIDTH)
        self.body = nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, classes))
        self.long = nn.Embedding(N_LONG, WIDTH)
        self.grey = nn.Parameter(torch.full((N_KINDS, WIDTH), 0.5))
        self.grid = nn.Embedding((N_KINDS + 1) ** 2, WIDTH)
        self.fixed = nn.Embedding.from_pretrained(torch.zeros(5, WIDTH))
        self.hour = nn.Embedding(N_HOURS, WIDTH)


def decode(x):
    degrees = 25 + x[:, 0]
    kind = (x[:, 1] * N_KINDS).long()
    return degrees, kind


def read(x):
    return x["kind"]


class Rows:
    def __getitem__(self, i):
        level = i - LOWEST
        return {"level": level, "age": i, "mood": i * 2}


def collate(rows):
    return {"level": [r["level"] for r in rows], "mood": rows[0] + rows[1]}
"""
SETTINGS = """
WIDTH = 3
"""
MAIN = """
from model_of_shop import Shop, Tuned

CFG = {"tokens": 5}
LABELS = ["a", "b"]


def build():
    n = len(LABELS)
    return Shop(CFG, classes=n)


def tuned(options, **settings):
    return Tuned(**settings, ranks=options.ranks)


def parser():
    import argparse

    made = argparse.ArgumentParser()
    made.add_argument("--ranks", "-r", type=int, default=8)
    return made
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program's three files, older than this process."""
    files = {"settings_of_shop": SETTINGS, "model_of_shop": MODEL, "main_of_shop": MAIN}
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in files.items():
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        os.utime(path, (1.0e9, 1.0e9))
    texts.tree_of.cache_clear()
    yield importlib.import_module("main_of_shop")
    for name in files:
        sys.modules.pop(name, None)


def line_of(text: str, part: str) -> int:
    return next(at for at, line in enumerate(text.split("\n"), 1) if part in line)


def asked(model: Any, name: str) -> list[tuple[str, str, int]]:
    layer = model.get_parameter(name) if name.endswith(".down") else model.get_submodule(name)
    path = name.split(".")[:-1]
    around = [model.get_submodule(".".join(path[:n])) for n in range(len(path), -1, -1)]
    if isinstance(layer, nn.Parameter):
        facts = {"name": name, "type": "Parameter", "attribute": "shape[0]", "value": layer.shape[0]}
    else:
        size = layer.num_embeddings if isinstance(layer, nn.Embedding) else layer.out_features
        facts = {"name": name, "type": type(layer).__name__, "attribute": "", "value": size}
    steps = creations.made_at(facts, around)
    return [(step["text"], os.path.basename(step["file"]), step["line"]) for step in steps]


def test_an_argument_is_followed_to_the_call(shop: Any) -> None:
    assert asked(shop.build(), "body.2") == [
        ("classes", "model_of_shop.py", line_of(MODEL, "self.body")),
        ("n=len(LABELS)", "main_of_shop.py", line_of(MAIN, "n = len")),
    ]


def test_a_default_is_what_the_argument_is(shop: Any) -> None:
    assert asked(shop.build(), "mood")[-1] == ("moods=4", "model_of_shop.py", line_of(MODEL, "moods=4"))


def test_a_default_that_no_call_of_the_text_gives_another(shop: Any) -> None:
    """As where a command line makes the class; it may have given another number."""
    lone = sys.modules["model_of_shop"].Lone
    assert asked(lone(), "level")[-1] == ("levels=4", "model_of_shop.py", line_of(MODEL, "levels=4"))
    assert asked(lone(9), "level") == [("levels", "model_of_shop.py", line_of(MODEL, "self.level"))]


def test_settings_that_are_spread_are_the_call_not_the_default(shop: Any) -> None:
    model = shop.tuned(shop.parser().parse_args([]), grades=6)
    assert asked(model, "grade") == [
        ("grades", "model_of_shop.py", line_of(MODEL, "self.grade")),
        ("Tuned(**settings, ranks=options.ranks)", "main_of_shop.py", line_of(MAIN, "return Tuned")),
    ]


def test_an_option_of_the_command_line(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default, where the command line gave no other."""
    parse = shop.parser().parse_args
    monkeypatch.setattr(sys, "argv", ["main.py"])
    assert asked(shop.tuned(parse([])), "rank")[-1] == (
        "ranks=8",
        "main_of_shop.py",
        line_of(MAIN, '"--ranks"'),
    )
    monkeypatch.setattr(sys, "argv", ["main.py", "-r", "8"])
    assert [step[0] for step in asked(shop.tuned(parse(["-r", "8"])), "rank")] == [
        "ranks",
        "ranks=options.ranks",
    ]


def test_a_power_is_followed_and_said_to_be_one(shop: Any) -> None:
    model = shop.build()
    facts = {"name": "grid", "type": "Embedding", "attribute": "num_embeddings", "value": 64}
    grid = creations.made_at(facts, [model])
    assert (grid[-1]["text"], grid[-1].get("computed")) == ("N_KINDS=7", True)
    facts.update(name="wide", value=9)
    wide = creations.made_at(facts, [model])
    assert (wide[-1]["text"], wide[-1].get("computed")) == ("N_KINDS=7", None)


def test_what_the_programs_calls_give_an_argument(shop: Any) -> None:
    found = creations.keyword("classes")
    assert found is not None and (found["text"], found["line"]) == ("classes=n", line_of(MAIN, "return Shop"))
    assert creations.keyword("moods") is None


def test_the_same_text_of_another_class_is_of_another_variable(shop: Any) -> None:
    model = importlib.import_module("model_of_shop")
    assert asked(model.Writes(), "place.step") == [
        ("steps", "model_of_shop.py", line_of(MODEL, "nn.Embedding(steps"))
    ]


def test_a_list_of_layers(shop: Any) -> None:
    assert asked(shop.build(), "cols.1") == [
        ("n", "model_of_shop.py", line_of(MODEL, "for n in SIZES")),
        ("SIZES=[2, 3]", "model_of_shop.py", line_of(MODEL, "SIZES = ")),
    ]


def test_an_entry_of_settings(shop: Any) -> None:
    assert asked(shop.build(), "tok") == [
        ("cfg['tokens']", "model_of_shop.py", line_of(MODEL, "self.tok")),
        ("tokens=5", "main_of_shop.py", line_of(MAIN, "tokens")),
    ]


def test_a_sum_and_a_constant(shop: Any) -> None:
    assert asked(shop.build(), "wide") == [
        ("N_KINDS + 2", "model_of_shop.py", line_of(MODEL, "self.wide")),
        ("N_KINDS=7", "model_of_shop.py", line_of(MODEL, "N_KINDS = 7")),
    ]


def test_a_quotient_is_a_size_of_its_own(shop: Any) -> None:
    assert asked(shop.build(), "hour")[-1] == (
        "N_HOURS=DAY // 3600",
        "model_of_shop.py",
        line_of(MODEL, "N_HOURS = "),
    )


def test_of_what_is_long_the_name_is_enough(shop: Any) -> None:
    assert asked(shop.build(), "long")[-1] == ("N_LONG=...", "model_of_shop.py", line_of(MODEL, "N_LONG = "))


def test_a_parameter_of_a_module_inside(shop: Any) -> None:
    assert asked(shop.build(), "mix.down") == [
        ("n", "model_of_shop.py", line_of(MODEL, "self.down")),
        ("N_KINDS=7", "model_of_shop.py", line_of(MODEL, "N_KINDS = 7")),
    ]


def test_a_parameter_that_is_filled_with_a_number(shop: Any) -> None:
    facts = {"name": "grey", "type": "Parameter", "attribute": "shape[0]", "value": 7}
    steps = creations.made_at(facts, [shop.build()])
    assert [step["text"] for step in steps] == ["N_KINDS", "N_KINDS=7"]


def test_a_call_without_a_size_is_named_as_a_whole(shop: Any) -> None:
    found = asked(shop.build(), "fixed")
    assert found == [
        (
            "nn.Embedding.from_pretrained(...)",
            "model_of_shop.py",
            line_of(MODEL, "self.fixed"),
        )
    ]


def test_a_layer_that_was_made_anew_elsewhere_is_not_explained(shop: Any) -> None:
    model = shop.build()
    model.tok = nn.Embedding(50, 3)  # 5 by the text
    assert asked(model, "tok") == []


def test_a_function_of_the_programs_that_computes(shop: Any) -> None:
    decode: Callable[[Any], Any] = sys.modules["model_of_shop"].decode
    _degrees, kind = decode(torch.tensor([[1.0, 1.0]]))
    found = computed.computed_facts("kind", kind)
    assert found is not None
    assert (found["name"], found["text"]) == ("kind", "(x[:, 1] * N_KINDS).long()")
    assert (os.path.basename(found["file"]), found["line"]) == ("model_of_shop.py", line_of(MODEL, "kind = "))


def test_a_function_that_hands_on_what_it_read_computes_nothing(shop: Any) -> None:
    read: Callable[[Any], Any] = sys.modules["model_of_shop"].read
    kind = read({"kind": torch.tensor([3])})
    assert computed.computed_facts("kind", kind) is None


def test_the_variable_that_functions_were_given() -> None:
    def look_up(ids: Any) -> Any:
        return computed.passed_as(ids)

    shortlist = torch.tensor([4, 9])
    found = look_up(shortlist)
    assert found["name"] == "shortlist" and found["file"] == __file__
    assert computed.passed_as(shortlist) is None  # the line itself has it


def test_a_model_of_a_library(shop: Any) -> None:
    """What the program gives the setting; else where it makes the model, by the setting's name if known."""

    def told(**library: str) -> list[tuple[str, int, bool]]:
        steps = creations.made_by_library(library)
        return [(step["text"], step["line"], step.get("whole", False)) for step in steps]

    line = line_of(MAIN, "return Shop")
    assert told(maker="Shop", setting="classes") == [("classes=n", line, False)]
    assert told(maker="Shop", setting="n_moods") == [("n_moods", line, False)]
    assert told(maker="Shop") == [("Shop(CFG, classes=n)", line, True)]
    assert told(maker="Market") == []


def test_the_entry_of_a_batch_that_the_data_set_computes(shop: Any) -> None:
    found = computed.computed_entry('batch["level"]')
    assert found is not None
    assert (found["name"], found["text"]) == ("level", "i - LOWEST")
    assert (os.path.basename(found["file"]), found["line"]) == (
        "model_of_shop.py",
        line_of(MODEL, "level = i"),
    )
    assert computed.computed_entry('batch["age"]') is None  # handed on
    assert computed.computed_entry('batch["mood"]') is None  # computed in two places
    assert computed.computed_entry("level") is None


def test_what_a_variable_was_made_of_was_given_on() -> None:
    def take(index: Any) -> Any:
        return computed.passed_as(index.unsqueeze(-1).expand(-1, 3), "index")

    masked = torch.tensor([4, 9])
    assert take(masked)["name"] == "masked"


def test_what_a_file_of_settings_fills_in_is_no_number(monkeypatch: Any) -> None:
    """`vocab_size=gin.REQUIRED`."""
    gin = types.ModuleType("gin")
    gin.REQUIRED, gin.SIZE = object(), 12  # type: ignore[attr-defined]
    program = types.ModuleType("model")
    program.__file__, program.gin, program.own = "/a/model.py", gin, Any  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "model", program)

    def stands_for_it(text: str) -> bool:
        return decided.is_placeholder(ast.parse(text, mode="eval").body, "/a/model.py")

    answers = [stands_for_it(text) for text in ("gin.REQUIRED", "gin.SIZE", "own.REQUIRED", "REQUIRED")]
    assert answers == [True, False, False, False]
