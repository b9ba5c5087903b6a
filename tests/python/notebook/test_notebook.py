"""``%load_ext trapline`` in a real kernel: a fault fails its cell, is shown below it, and harms nothing."""

from __future__ import annotations

import re
import time

SETUP = """
%load_ext trapline
import torch
import torch.nn.functional as F
torch.manual_seed(0)
kept = 17
"""
LABELS = "logits = torch.randn(8, 4)\nlabels = torch.tensor([0, 1, 2, 3, 9, 1, 0, 2])\n"


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_three_faults_of_three_causes_and_the_session_lives_on(start):
    book = start()
    assert book.run(SETUP).errors() == []
    cells = {
        "TL101": LABELS + "model = torch.nn.Linear(3, 4)\nF.cross_entropy(model(torch.randn(8, 3)), labels)",
        "TL103": "table = torch.nn.Embedding(10, 3)\ntable(torch.tensor([[1, 2], [3, 10]]))",
        "TL201": "torch.randn(2, 3) @ torch.randn(4, 5)",
    }
    for code, source in cells.items():
        cell = book.run(source)
        assert len(cell.errors()) == 1, code
        (page,) = cell.shown()
        (text,) = cell.shown("text/plain")
        assert f"error[{code}]:" in page and f"error[{code}]:" in plain(text)
        assert "help: " in plain(text) and "What to do" in page
        assert "<script" not in page
        assert cell.stream("stderr") == ""  # the report is shown once
    assert (
        book.run("print(kept, float(F.cross_entropy(logits, labels.clamp(max=3))))")
        .stream()
        .startswith("17 ")
    )


def test_the_error_of_the_cell_is_short_and_names_the_line(start):
    book = start()
    book.run(SETUP)
    book.run(LABELS + "def step(y):\n    return F.cross_entropy(logits, y)")
    cell = book.run("total = 0\nfor _ in range(2):\n    total += step(labels)")
    (error,) = cell.errors()
    assert error.ename == "DeviceAssertError"
    assert error.evalue.startswith(
        "cross_entropy: target[4] is 9, but the input has 4 classes: valid labels are"
    )
    lines = plain("\n".join(error.traceback)).splitlines()
    assert "Cell In[3], line 3" in lines and "----> 3 total += step(labels)" in lines
    assert "Cell In[2], line 4 in step" in lines
    assert [line for line in lines if "site-packages" in line] == []
    assert len(lines) < 14
    (page,) = cell.shown()
    assert "Cell In[2], line 4 in step" in page
    assert "<mark>F.cross_entropy(logits, y)</mark>" in page
    assert "element 4: 1 bad" in page  # the strip
    whole = book.run("%tb").outputs
    assert "functional.py" in plain(str(whole))


def test_the_magic_tells_checks_and_switches(start):
    book = start()
    assert "the guard waits for `import torch`" in book.run("%load_ext trapline\n%trapline").stream()
    book.run(SETUP.replace("%load_ext trapline", "") + LABELS)
    state = book.run("%trapline status").stream()
    assert state.startswith("guard: ") and "torch 2." in state and "switched off" not in state
    assert book.run("%trapline check labels labels[:4] 4").stream() == "labels[:4]: nothing wrong\n"
    (page,) = book.run("%trapline check labels labels 4").shown()
    assert "is 9" in page
    assert book.run("%trapline check finite logits").stream() == "logits: nothing wrong\n"
    assert "nan" in book.run("%trapline check finite logits / 0 * 0").shown()[0]
    assert "off" in book.run("%trapline off").stream()
    assert book.run("F.cross_entropy(logits, labels)").errors()[0].ename == "IndexError"
    assert book.run("%trapline").stream().endswith("guard: switched off\n")
    book.run("%trapline on")
    assert book.run("F.cross_entropy(logits, labels)").errors()[0].ename == "DeviceAssertError"


def test_a_line_that_cannot_be_done_says_what_to_write(start):
    book = start()
    book.run(SETUP + LABELS)
    for line, words in {
        "bogus": "there is no 'bogus': write status, on, off, watch, check, save, restart",
        "check": "write `check labels EXPRESSION CLASSES`",
        "check labels labels": "write `check labels EXPRESSION CLASSES`",
        "check labels nothing_here 4": "cannot evaluate 'nothing_here 4': NameError",
        "check labels logits 'x'": "cannot check logits",
        "watch": "write `watch nan`, `watch light` or `watch off`",
        "save": "write `save FILE`",
        "save /proc/nothing/here": "cannot write /proc/nothing/here",
    }.items():
        cell = book.run(f"%trapline {line}")
        assert cell.errors() == [], line
        assert cell.stream("stderr").startswith("%trapline: ") and words in cell.stream("stderr"), line


def test_the_watch_is_switched_on_and_off(start):
    book = start()
    book.run(SETUP)
    assert "are watched" in book.run("%trapline watch nan").stream()
    assert "losses and gradients are watched" in book.run("%trapline watch light").stream()
    assert "nothing is watched" in book.run("%trapline watch off").stream()


def test_an_error_that_is_no_fault_stays_as_it_was(start):
    book = start()
    book.run(SETUP)
    cell = book.run("1 / 0")
    assert cell.errors()[0].ename == "ZeroDivisionError" and cell.shown() == []
    assert (
        book.run(
            "try:\n    torch.ones(3)[torch.tensor([7])]\nexcept IndexError as e:\n    print('caught')"
        ).shown()
        == []
    )


def test_an_exception_as_the_value_of_a_cell_is_shown_as_its_finding(start):
    book = start()
    book.run(SETUP)
    cell = book.run(
        "try:\n    torch.ones(3)[torch.tensor([7])]\nexcept IndexError as e:\n    error = e\nerror"
    )
    assert cell.errors() == [] and "error[TL105]" in cell.shown()[0]


def test_unloading_takes_everything_out_again(start):
    book = start()
    book.run(SETUP + LABELS)
    book.run("%unload_ext trapline")
    cell = book.run("F.cross_entropy(logits, labels)")
    assert cell.errors()[0].ename == "IndexError" and cell.shown() == []
    assert book.run("%trapline").errors() or "not found" in book.run("%trapline").stream("stderr")
    book.run("%load_ext trapline")
    assert book.run("F.cross_entropy(logits, labels)").errors()[0].ename == "DeviceAssertError"


LOST = """
a = torch.arange(4, device="cuda")
try:
    a[torch.tensor([9], device="cuda")]
    torch.cuda.synchronize()
except RuntimeError as error:
    print(type(error).__name__)
"""


def test_a_lost_context_is_told_in_plain_words_with_what_can_be_saved(start, tmp_path):
    book = start(TRAPLINE_CPU="1")
    book.run(SETUP + "numbers = [1, 2]\nx = torch.ones(2)\nlazy = (i for i in numbers)")
    book.run("%trapline off")
    assert book.run(LOST).stream() != ""
    cell = book.run("a.sum().item()")
    assert cell.errors()
    text = cell.shown("text/plain")[-1]
    assert "The CUDA context of this session is lost" in text
    assert "Can be saved: kept, numbers, x." in text
    assert "gone: a." in text
    assert not any("is lost" in shown for shown in book.run("1 / 0").shown("text/plain"))  # once
    assert "context: lost" in book.run("%trapline").stream()
    saved = book.run("%trapline save saved.pkl").stream()
    assert saved.startswith("kept, numbers, x in saved.pkl; not written, since they are on the GPU: a.")
    again = book.run("%trapline save saved.pkl").stream("stderr")
    assert "File exists: choose another file" in again
    # A session whose context was lost before Trapline came learns of it at once.
    assert "is lost" in book.run("%reload_ext trapline").shown("text/plain")[0]

    fresh = start(TRAPLINE_CPU="")
    back = saved.partition("To get them back: ")[2]
    assert fresh.run(back + "print(kept, numbers, x.tolist())").stream() == "17 [1, 2] [1.0, 1.0]\n"


def test_restart_ends_the_kernel(start):
    book = start()
    book.run("%load_ext trapline")
    assert "starts a new one" in book.run("%trapline restart").stream()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not book.client.km.has_kernel or book.client.km.provisioner.process.poll() is not None:
            return
        time.sleep(0.1)
    raise AssertionError("the kernel goes on")
