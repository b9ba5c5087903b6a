"""Guard and fault room together: small programs in processes of their own, and the report they leave."""

import glob
import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT

BUILD = os.environ.get("TRAPLINE_BUILD_DIR", os.path.join(ROOT, "build"))
LIBRARY = os.environ.get("TRAPLINE_LIB", os.path.join(BUILD, "lib", "libtrapline.so"))

pytestmark = pytest.mark.skipif(not os.path.isfile(LIBRARY), reason="libtrapline.so is not built")
ADAPTERS = ["pure"] + (
    ["native"] if glob.glob(os.path.join(BUILD, "adapters", "trapline_guard-*.so")) else []
)

HEAD = "import torch, trapline\nfrom torch import nn\nF = nn.functional\ntrapline.install()\n"
HEAD += "torch.manual_seed(0)\n"


@pytest.fixture(params=ADAPTERS)
def run(request, tmp_path):
    """Runs a program under the guard; returns its output and the findings it wrote."""

    def start(body):
        program, folder = tmp_path / "train.py", tmp_path / "report"
        program.write_text(HEAD + body)
        folder.mkdir()
        environment = dict(
            os.environ, TRAPLINE_REPORT_DIR=str(folder), TRAPLINE_LIB=LIBRARY, TRAPLINE_DEBUG="1"
        )
        environment["PYTHONPATH"] = os.path.join(ROOT, "python")
        environment["TRAPLINE_ADAPTER"] = "pure" if request.param == "pure" else ""
        done = subprocess.run(
            [sys.executable, str(program)], check=False, env=environment, capture_output=True, text=True
        )
        findings = []
        for path in sorted(folder.glob("finding-*.json")):
            report = json.loads(path.read_text())
            assert report["notes"] == []
            findings += report["findings"]
        return done, findings

    return start


def line_of(text):
    """The line number of a text in a program, HEAD included."""
    return HEAD.count("\n") + 1 + text


def test_a_head_that_is_too_small(run):
    done, findings = run("""
from torch.utils.data import DataLoader, TensorDataset
y = torch.arange(40) % 9
y[[29, 36, 38]] = 9
model = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 9))
for x, labels in DataLoader(TensorDataset(torch.randn(40, 4), y), batch_size=8):
    loss = F.cross_entropy(model(x), labels).backward()
""")
    assert done.returncode == 1 and "DeviceAssertError" in done.stderr.splitlines()[-2]
    (finding,) = findings
    assert finding["code"] == "TL102" and finding["certainty"] == "proven" and finding["role"] == "root"
    assert finding["element"]["index"] == [5] and finding["element"]["value"] == 9
    assert finding["element"]["bad"] == 1 and finding["element"]["total"] == 8
    layer = finding["layer"]
    assert (layer["name"], layer["type"], layer["attribute"]) == ("model[2]", "Linear", "out_features")
    assert (layer["value"], layer["needed"]) == (9, 10)
    assert finding["sample"] == {
        "batch": 3,
        "row": 5,
        "dataset_index": 29,
        "dataset": {"type": "TensorDataset", "length": 40},
    }
    origin = finding["origin"]
    assert (
        os.path.basename(origin["file"]) == "train.py"
        and origin["line"] == line_of(6)
        and origin["user"] is True
    )
    if sys.version_info >= (3, 11):
        marked = origin["code"][origin["column"] - 1 : origin["end_column"] - 1]
        assert marked == "F.cross_entropy(model(x), labels)"
    assert finding["stack"][-1]["user"] is False and finding["process"]["pid"] > 0


def test_nan_cast_to_a_label(run):
    _done, findings = run("""
score = torch.tensor([1.0, float('nan'), 2.0])
label = score.long()
F.cross_entropy(torch.zeros(3, 5), label)
""")
    (finding,) = findings
    assert finding["code"] == "TL108" and finding["origin"]["line"] == line_of(2)
    assert finding["element"]["index"] == [1]


@pytest.mark.parametrize(
    "call",
    [
        "with torch.inference_mode():\n    F.embedding(ids, table)",
        "with torch.no_grad():\n    F.embedding(ids, table)",
        "with torch.autocast('cpu', dtype=torch.bfloat16):\n    F.embedding(ids, table)",
        "torch.func.vmap(lambda i: F.embedding(i, table))(ids.view(1, 3))",
        "import threading\nt = threading.Thread(target=lambda: F.embedding(ids, table)); t.start(); t.join()",
        "big = torch.zeros(1 << 25, dtype=torch.long); big[-1] = 12\ntorch.index_select(table, 0, big)",
        "table.requires_grad_()\nF.embedding(ids, table)",
    ],
)
def test_under_any_mode(run, call):
    done, findings = run(f"table = torch.zeros(5, 2)\nids = torch.tensor([0, 12, 1])\n{call}\n")
    assert len(findings) == 1 and "failed" not in done.stderr
    assert findings[0]["element"]["value"] == 12 and findings[0]["element"]["bad"] == 1
    assert "12" in findings[0]["summary"]
    assert os.path.basename(findings[0]["origin"]["file"]) == "train.py"


def test_a_caught_fault_leaves_the_program_running(run):
    done, findings = run("""
for value in (7, 8):
    try:
        F.embedding(torch.tensor([value]), torch.zeros(5, 2))
    except IndexError as error:
        assert isinstance(error, RuntimeError) and error.finding['element']['value'] == value
print('after', torch.randn(2).shape)
""")
    assert done.returncode == 0 and done.stdout == "after torch.Size([2])\n"
    assert [finding["element"]["value"] for finding in findings] == [7]  # one report for one place


def test_a_loss_that_vmap_takes_apart_is_still_the_loss(run):
    _done, findings = run("""
y = torch.tensor([0, 4, 2])
nets = torch.randn(2, 3, 4)
torch.func.vmap(lambda logits: F.cross_entropy(logits, y))(nets)
""")
    (finding,) = findings
    assert (finding["op"], finding["argument"]) == ("cross_entropy", "target")
    element = finding["element"]
    assert (element["index"], element["value"], element["bad"], element["total"]) == ([1], 4, 1, 3)
    assert finding["origin"]["line"] == line_of(3)


def test_a_quantized_table_names_the_row(run):
    _done, findings = run("""
table = torch.ao.nn.quantized.Embedding(6, 4)
ids = torch.tensor([0, 9, 2])
table(ids)
""")
    (finding,) = findings
    assert finding["code"] == "TL103" and finding["origin"]["line"] == line_of(3)
    assert (finding["element"]["index"], finding["element"]["value"]) == ([1], 9)
    assert "6 rows" in finding["summary"]


def test_a_quantized_bag_tells_no_value(run):
    _done, findings = run("""
table = torch.ao.nn.quantized.EmbeddingBag(6, 4, mode="sum")
table(torch.tensor([0, 9, 2]), torch.tensor([0, 1]))
""")
    (finding,) = findings
    assert finding["code"] == "TL103" and finding["origin"]["line"] == line_of(2)
    assert "element" not in finding and "outside the quantized table" in finding["summary"]


def test_a_loop_that_generates_is_not_told_to_truncate(run):
    _done, findings = run("""
words, position = nn.Embedding(9, 4), nn.Embedding(6, 4)
text = torch.ones(1, 2, dtype=torch.long)
for _ in range(9):
    h = words(text) + position(torch.arange(text.shape[1]))
    text = torch.cat([text, h.sum(-1)[:, -1:].long().clamp(0, 8)], 1)
""")
    (finding,) = findings
    assert finding["code"] == "TL104" and "sample" not in finding
    assert not any("truncate" in line for line in finding["fix"])
    assert any("in each step" in line for line in finding["fix"])


def test_a_layer_of_a_library_below_a_part_of_the_same_name(tmp_path):
    from trapline._fault.program import libraries

    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "somelib.py").write_text(
        "from torch import nn\n"
        "class Inner(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.tables = nn.ModuleList([nn.Embedding(2, 3)])\n"
        "class Outer(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.model = Inner()\n"
    )
    sys.path.insert(0, str(folder))
    try:
        import somelib

        model = somelib.Outer()
        facts = libraries.library_facts({"name": "model.tables.0"})
    finally:
        sys.path.remove(str(folder))
    assert (facts["owner"], facts["maker"]) == ("somelib", "Outer") and model is not None


def test_a_fault_that_torchscript_carries_on_as_text_is_the_end(run, tmp_path):
    done, findings = run("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 2)

    def forward(self, ids):
        return self.table(ids)

torch.jit.script(Net())(torch.tensor([1, 7]))
""")
    assert done.returncode == 1
    (finding,) = findings
    assert finding["element"]["value"] == 7
    (ended,) = [json.loads(path.read_text()) for path in (tmp_path / "report").glob("ended-*.json")]
    assert ended["other"] == "" and len(ended["unhandled"]) == 1


def test_a_target_in_the_shape_that_its_caller_has(run):
    """cross_entropy() of [batch, classes, length] puts a dimension of 1 into it."""
    done, findings = run(
        "y = torch.zeros(2, 5, dtype=torch.long)\ny[1, 3] = 7\nF.cross_entropy(torch.randn(2, 4, 5), y)\n"
    )
    assert done.returncode and findings[0]["summary"].startswith("cross_entropy: target[1, 3] is 7")
    assert (findings[0]["tensor"]["shape"], findings[0]["element"]["index"]) == ([2, 5], [1, 3])


VMAP = """
from torch.func import functional_call, stack_module_state, vmap

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = nn.Embedding(57, 8)

    def forward(self, x):
        return self.state(x).sum()

models = [Model() for _ in range(4)]
weights, buffers = stack_module_state(models)
x = torch.arange(200).remainder(57).reshape(4, 50)
x[3, 48] = 72
vmap(lambda w, b, one: functional_call(models[0], (w, b), (one,)))(weights, buffers, x)
"""


def test_several_models_as_one(run):
    _, findings = run(VMAP)
    finding = findings[0]
    assert finding["element"]["index"] == [3, 48] and finding["element"]["value"] == 72
    assert finding["valid"]["max"] == 56 and finding["element"]["variable"]["name"] == "x"
    assert "vmap runs 4 models as one" in finding["summary"]
