"""Source lines, columns, user and library frames."""

import os
import runpy
import sys
import time

import pytest
from conftest import live_pairs

torch = pytest.importorskip("torch")

from trapline._fault.program import frames, source  # noqa: E402


def capture():
    return live_pairs(2)


def run_file(path):
    return runpy.run_path(str(path), {"capture": capture})["pairs"]


def write_old(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    old = time.time() - 3600 * 24
    os.utime(path, (old, old))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns are recorded since 3.11")
def test_columns_are_those_of_the_call_in_characters(tmp_path):
    path = tmp_path / "train.py"
    write_old(path, "def f(x):\n    é = 'ü'; pairs = [capture()]; return pairs[0]\npairs = f(1)\n")
    frame = frames.make_stack(run_file(path))[-1]
    assert (frame["file"], frame["line"], frame["function"]) == (str(path), 2, "f")
    assert frame["code"] == "    é = 'ü'; pairs = [capture()]; return pairs[0]"
    assert frame["code"][frame["column"] - 1 : frame["end_column"] - 1] == "capture()"
    assert frame["user"] is True


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns are recorded since 3.11")
def test_a_call_over_several_lines_is_clipped_to_its_first(tmp_path):
    path = tmp_path / "train.py"
    write_old(path, "pairs = [\n    capture(  # why\n    )\n][0]\n")
    frame = frames.make_stack(run_file(path))[-1]
    assert frame["line"] == 2
    assert frame["code"][frame["column"] - 1 : frame["end_column"] - 1] == "capture("


def test_latin_1_source(tmp_path):
    path = tmp_path / "train.py"
    write_old(path, "# -*- coding: latin-1 -*-\nname = 'Jürgen'; pairs = capture()\n", "latin-1")
    assert frames.make_stack(run_file(path))[-1]["code"] == "name = 'Jürgen'; pairs = capture()"


def test_a_file_that_is_gone_shorter_or_changed_gives_no_code(tmp_path):
    path = tmp_path / "train.py"
    text = "\n\npairs = capture()\n"
    write_old(path, text)
    pairs = run_file(path)
    assert frames.make_stack(pairs)[-1]["code"] == "pairs = capture()"

    source._lines_of_file.cache_clear()
    write_old(path, "\n")
    shorter = frames.make_stack(pairs)[-1]
    assert (shorter["line"], shorter["code"]) == (3, "") and "column" not in shorter

    later = time.time() + 60
    path.write_text(text)
    os.utime(path, (later, later))
    changed = frames.make_stack(pairs)[-1]
    assert (changed["line"], changed["code"]) == (3, "")

    path.unlink()
    gone = frames.make_stack(pairs)[-1]
    assert (gone["file"], gone["line"], gone["code"]) == (str(path), 3, "")


def test_a_notebook_cell_comes_from_linecache():
    import linecache

    name = "/tmp/ipykernel_17/2718.py"
    text = "x = 1\npairs = capture()\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"capture": capture}
    exec(compile(text, name, "exec"), space)
    frame = frames.make_stack(space["pairs"])[-1]
    assert (frame["line"], frame["code"], frame["user"]) == (2, "pairs = capture()", True)


def test_library_frames_and_the_origin():
    pairs = []

    class Probe(torch.nn.Module):
        def forward(self, x):
            pairs.extend(live_pairs(1))
            return x

    torch.nn.Sequential(Probe())(torch.zeros(1))
    inner = frames.make_stack(pairs)
    assert inner[-1]["user"] and inner[-1]["function"].endswith("forward")
    assert not inner[-2]["user"]
    assert frames.origin_of(inner) is inner[-1]
    library_end = [frame for frame in inner if frame is not inner[-1]]
    origin = frames.origin_of(library_end)
    assert (
        origin["function"] == "test_library_frames_and_the_origin" and "Sequential(Probe())" in origin["code"]
    )


def test_own_frames_are_dropped():
    own = compile("pairs = capture()", os.path.join(os.path.dirname(frames.__file__), "x.py"), "exec")
    space = {"capture": capture}
    exec(own, space)
    stack = frames.make_stack(space["pairs"])
    assert stack[-1]["function"] == "test_own_frames_are_dropped"


def test_without_columns_the_operation_is_searched_in_the_line():
    line = "    loss = F.cross_entropy(out, y)"
    first, last = frames._columns_by_name(line, "cross_entropy")
    assert line[first - 1 : last - 1] == "F.cross_entropy"
    assert frames._columns_by_name(line, "x[index]") is None
    assert frames._columns_by_name("loss = my_cross_entropy2(out)", "cross_entropy") is None


def test_the_shape_that_cross_entropy_was_given():
    """It puts a row of one into targets of two dimensions: nobody's program has target[3, 0, 5]."""
    target = torch.arange(24).reshape(3, 8)[:, 2:]  # not contiguous: it is copied
    inner = target.reshape(3, 1, 6)
    assert frames.shape_given(inner) is None
    scope = {"__name__": "torch.nn.functional", "shape_given": frames.shape_given}
    exec("def cross_entropy(target, inner): return shape_given(inner)", scope)
    assert scope["cross_entropy"](target, inner) == [3, 6]
    assert scope["cross_entropy"](target + 1, inner) is None
