"""The handler: facts, file, exception, and what is left when something fails."""

import gc
import json
import os
import pickle
import re
import resource
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
from conftest import ROOT, label_violation, make_violation

torch = pytest.importorskip("torch")

from trapline import DeviceAssertError  # noqa: E402
from trapline._fault import brief, life, write  # noqa: E402
from trapline._fault import violation as faults  # noqa: E402
from trapline._fault.program import owners, sites  # noqa: E402
from trapline._library import diagnose  # noqa: E402

FINDING = {
    "code": "TL101",
    "cause": "label_out_of_range",
    "certainty": "proven",
    "role": "root",
    "summary": "s",
    "fix": [],
}


def start_over():
    """No fault was seen in this process."""
    life._start_over()
    sites.forget()
    brief._made.clear()


@pytest.fixture
def diagnosed(monkeypatch, tmp_path):
    """Replaces libtrapline; returns the facts it was given."""
    given = []

    def fake(facts):
        given.append(json.loads(json.dumps(facts, allow_nan=False)))
        return dict(FINDING)

    monkeypatch.setattr(diagnose, "diagnose", fake)
    monkeypatch.setenv("TRAPLINE_REPORT_DIR", str(tmp_path))
    monkeypatch.setattr(write, "_complained", False)
    start_over()
    return given


def test_whether_the_call_keeps_a_gradient(diagnosed):
    """As it was at the call, not while facts are collected; a forward that is checkpointed keeps none, and
    trains."""

    class Model(torch.nn.Module):
        def forward(self):
            start_over()
            faults.handler(label_violation(torch.zeros(4, 195), torch.tensor([3, 195, 7, 1])))

    model = Model()
    model()
    with torch.no_grad():
        model()
        model.eval()()
    trained, checkpointed, used = diagnosed
    assert "no_grad" not in trained and "no_grad" not in checkpointed and used["no_grad"] is True


def test_facts_of_a_label(diagnosed, tmp_path):
    target = torch.tensor([3, 195, 7, -1])
    violation = label_violation(torch.zeros(4, 195), target)
    error = faults.handler(violation)
    assert str(error) == "s" and isinstance(error, IndexError)
    assert error.finding == FINDING
    (facts,) = diagnosed
    assert facts["kind"] == "violation" and facts["contract"] == "nll_loss_forward.target"
    assert facts["device"] == "cpu" and facts["index"] == [1]
    assert facts["scan"]["bad"] == 2 and facts["scan"]["value"] == 195 and facts["scan"]["also"] == -100
    assert facts["tensor"] == {"shape": [4], "dtype": "int64", "device": "cpu"}
    assert facts["args"]["self"] == {"shape": [4, 195], "dtype": "float32", "device": "cpu"}
    assert facts["args"]["ignore_index"] == -100 and facts["args"]["weight"] is None
    assert sorted(facts["values"]) == [[-1, 1], [195, 1]]
    assert facts["origin"]["function"] == "test_facts_of_a_label"
    assert facts["origin"]["code"] == "    violation = label_violation(torch.zeros(4, 195), target)"
    assert facts["stack"][-1].items() <= facts["origin"].items()  # which has the lines around it, too
    assert facts["process"]["pid"] == os.getpid()
    (file,) = tmp_path.glob("finding-*.json")
    assert re.search(rf"-{os.getpid()}\.[a-z2-7]{{4}}-0\.json$", file.name)
    report = json.loads(file.read_text())
    assert report["verdict"] == "fault" and report["findings"] == [FINDING] and report["command"] == "run"


def test_the_same_violation_is_reported_once(diagnosed, tmp_path):
    violation = label_violation(torch.zeros(2, 3), torch.tensor([0, 3]))
    assert faults.handler(violation) is faults.handler(violation)
    assert len(list(tmp_path.iterdir())) == 1


def fault_at(place):
    """A violation at a place of its own in the program."""
    line = "\n" * place + "v = label_violation(torch.zeros(2, 3), torch.tensor([0, 3]))"
    names = {"label_violation": label_violation, "torch": torch}
    exec(compile(line, f"/home/u/place{place}.py", "exec"), names)
    return names["v"]


def test_at_most_twenty_files_and_the_rest_is_counted(diagnosed, tmp_path):
    for place in range(23):
        faults.handler(fault_at(place))
    assert len(list(tmp_path.glob("finding-*.json"))) == 20
    life.save()
    (ended,) = tmp_path.glob("ended-*.json")
    assert json.loads(ended.read_text())["raised"] == {"TL101": 23}


def test_a_fault_of_a_known_place_is_summed_up_without_looking_around(diagnosed, monkeypatch, tmp_path):
    """Counts the work: the heap, the frames and the library are asked for the first fault only."""
    walks, looks = [], []
    monkeypatch.setattr(gc, "get_objects", lambda *a: walks.append(1) or [])
    monkeypatch.setattr(faults, "collect", lambda *a, real=faults.collect: looks.append(1) or real(*a))
    for _ in range(1000):
        error = faults.handler(label_violation(torch.zeros(4, 3), torch.tensor([0, 1, 2, 7])))
        assert str(error) == "s" and error.finding == FINDING
    assert (len(walks), len(looks)) == (0, 1)
    assert len(diagnosed) == 2  # in full, and the sentence
    assert diagnosed[1]["scan"]["value"] == 7 and diagnosed[1]["index"] == [3]
    assert "stack" not in diagnosed[1]
    # Powers of two are written down, in case the process is killed.
    (ended,) = tmp_path.glob("ended-*.json")
    assert json.loads(ended.read_text())["raised"] == {"TL101": 512}


def test_a_known_place_still_tells_each_value(diagnosed):
    for value in (7, 8):
        for place in range(3):
            target = torch.tensor([0, 0, 0])
            target[place] = value
            str(faults.handler(label_violation(torch.zeros(3, 3), target)))
    told = [(facts["scan"]["value"], facts["index"]) for facts in diagnosed]
    assert told == [(value, [place]) for value in (7, 8) for place in range(3)]


def test_what_nobody_reads_is_not_made(diagnosed):
    errors = [faults.handler(label_violation(torch.zeros(2, 3), torch.tensor([0, 3 + i]))) for i in range(4)]
    assert len(diagnosed) == 1  # the first of the place
    life.raised(DeviceAssertError(), "TL101", dict)  # another fault follows
    assert errors[2].args == ("s",) and errors[2].finding == FINDING
    assert [facts["scan"]["value"] for facts in diagnosed] == [3, 5]
    assert repr(errors[3]) == "DeviceAssertError('s')" and str(pickle.loads(pickle.dumps(errors[1]))) == "s"
    assert [facts["scan"]["value"] for facts in diagnosed] == [3, 5, 6, 4]


def test_a_fault_that_was_handled_keeps_no_tensor(diagnosed):
    def fault():
        target = torch.tensor([0, 3])
        violation = label_violation(torch.zeros(2, 3), target)
        error = faults.handler(violation)
        violation.clear()
        return weakref.ref(target), error

    error = fault()[1]
    del error
    second, error = fault()
    assert second() is not None  # who holds the exception can ask
    assert error.finding == FINDING
    del error
    assert second() is None


BARE = "cross_entropy: 1 of 2 elements of target is not valid: 3, at position 1"


def test_a_sentence_that_fails_leaves_a_bare_one(diagnosed, monkeypatch):
    errors = [faults.handler(label_violation(torch.zeros(2, 3), torch.tensor([0, 3]))) for _ in range(2)]
    monkeypatch.setattr(faults.brief, "_facts", lambda *_: 1 / 0)
    assert str(errors[1]).startswith(BARE)
    assert errors[1].finding["code"] == "TL901"


def test_the_heap_is_walked_for_what_can_be_a_parameter_only(monkeypatch):
    walks = []
    monkeypatch.setattr(gc, "get_objects", lambda *a: walks.append(1) or [])
    table = torch.zeros(5, 2)
    assert owners.owners_of(table) == [] and walks == []
    owners.owners_of(torch.nn.Parameter(table, requires_grad=False))
    owners.owners_of(table.clone().requires_grad_())
    assert len(walks) == 2


def test_what_ended_the_program_is_completed_from_its_traceback(diagnosed, tmp_path):
    def step():
        raise faults.handler(label_violation(torch.zeros(2, 3), torch.tensor([0, 3])))

    for _ in range(2):
        try:
            step()
        except IndexError as error:
            last = error
    assert life.uncaught(last, "process") is last.finding
    assert "stack" not in diagnosed[1]
    assert diagnosed[2]["stack"][-1]["function"] == "step"
    (ended,) = tmp_path.glob("ended-*.json")
    report = json.loads(ended.read_text())
    (name,) = report["unhandled"]
    assert re.fullmatch(rf"finding-.+-{os.getpid()}\.[a-z2-7]{{4}}-1\.json", name)
    assert report["over"] is True and report["raised"] == {"TL101": 2}


def test_a_forked_child_does_not_wait_for_its_parents_lock(diagnosed, tmp_path):
    violation = fault_at(1)  # made here: torch's own threads do not outlive a fork
    over = threading.Event()

    def write_on():
        while not over.is_set():
            write.write_finding(FINDING, [], last=True)

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # ends a child that waits
                ok = isinstance(faults.handler(violation), IndexError) and life._life.raised == {"TL101": 1}
                ok = ok and len(list(tmp_path.glob(f"finding-*-{os.getpid()}.????-0.json"))) == 1
                os._exit(0 if ok else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        over.set()
        writer.join()


def test_a_process_writes_twenty_findings_and_the_one_that_ends_it(diagnosed, tmp_path):
    paths = [write.write_finding(FINDING, ["a note"]) for _ in range(21)]
    assert paths[20] is None and len(set(paths)) == 21
    assert write.is_full() and write.was_written()
    assert write.write_finding(FINDING, [], last=True).endswith("-20.json")
    report = json.loads(Path(paths[0]).read_text())
    assert report["trapline"] == {"version": diagnose.version(), "schema": 1}
    assert (report["command"], report["verdict"]) == ("run", "fault")
    assert (report["findings"], report["notes"]) == ([FINDING], ["a note"])
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json"] * 21


def test_what_json_cannot_say_is_written_all_the_same(diagnosed, tmp_path):
    path = write.write_finding({**FINDING, "op": "\udc80", "element": {"value": float("nan")}}, [])
    (finding,) = json.loads(Path(path).read_text())["findings"]
    assert finding["op"] == "?" and finding["element"] == {"value": "nan"}


def test_a_file_size_limit_costs_the_file_not_the_process(diagnosed, tmp_path, capsys):
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it; a C++ program does not
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
        os._exit(0 if write.write_finding(FINDING, []) is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    (lost,) = tmp_path.iterdir()  # an empty file, which tells that
    assert (lost.name.split("-")[0], lost.stat().st_size) == ("lost", 0)


def test_a_folder_that_cannot_be_written_is_said_once(diagnosed, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TRAPLINE_REPORT_DIR", str(tmp_path / "missing"))
    for _ in range(2):
        assert isinstance(
            faults.handler(label_violation(torch.zeros(2, 3), torch.tensor([0, 3]))), IndexError
        )
    complaint, first = capsys.readouterr().err.splitlines()  # of a place that is known nothing more is said
    assert complaint.startswith("trapline: cannot write the report into ") and complaint.endswith(
        "--report DIR"
    )
    assert first == "trapline: [TL101] s"


def test_a_finding_that_could_not_be_written_is_known_at_the_end(diagnosed, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(
        write.report, "write_finding", lambda *_: (_ for _ in ()).throw(write.report.NotWritten("full"))
    )
    monkeypatch.setattr(write, "_lost", 0)
    monkeypatch.setattr(write, "_told", set())
    faults.handler(label_violation(torch.zeros(2, 3), torch.tensor([0, 3])))
    (ended,) = tmp_path.glob("ended-*.json")  # at once: the process may be killed
    assert json.loads(ended.read_text())["lost"] == 1


def test_a_failing_collector_costs_its_fact_only(diagnosed, monkeypatch, tmp_path):
    monkeypatch.setattr(faults.values, "bad_values", lambda *_: 1 / 0)
    monkeypatch.setenv("TRAPLINE_DEBUG", "1")
    faults.handler(label_violation(torch.zeros(2, 3), torch.tensor([0, 3])))
    assert "values" not in diagnosed[0] and diagnosed[0]["index"] == [1]
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text())["notes"] == [
        "values is not known: ZeroDivisionError: division by zero"
    ]


def test_a_library_that_fails_leaves_a_bare_finding(diagnosed, monkeypatch, tmp_path):
    monkeypatch.setattr(
        diagnose, "diagnose", lambda facts: (_ for _ in ()).throw(OSError("no libtrapline.so"))
    )
    error = faults.handler(label_violation(torch.zeros(2, 3), torch.tensor([0, 3])))
    assert str(error).startswith(BARE)
    (file,) = tmp_path.iterdir()
    finding = json.loads(file.read_text())["findings"][0]
    assert finding["code"] == "TL901" and finding["origin"]["user"] is True
    assert "no libtrapline.so" in finding["fix"][0]


def test_a_handler_that_fails_keeps_a_bare_finding(diagnosed, monkeypatch, tmp_path):
    monkeypatch.setattr(faults, "collect", lambda *_: 1 / 0)
    error = faults.handler(label_violation(torch.zeros(2, 3), torch.tensor([0, 3])))
    assert str(error).startswith(BARE)
    (file,) = tmp_path.glob("finding-*.json")
    (finding,) = json.loads(file.read_text())["findings"]
    assert finding["code"] == "TL901"
    assert "ZeroDivisionError: division by zero" in finding["fix"][0]


def test_garbage_instead_of_a_violation_gives_an_exception_not_an_error():
    assert isinstance(faults.handler({}), IndexError)
    assert isinstance(faults.handler({"contract": "embedding.indices", "scan": None}), IndexError)


def test_values_of_floats_and_big_integers(diagnosed):
    probabilities = torch.tensor([0.5, float("nan"), float("inf"), -0.25, float("nan")])
    bad = ~((probabilities >= 0) & (probabilities <= 1))
    faults.handler(
        make_violation("binary_cross_entropy.self", probabilities, 0, 1, {"self": probabilities}, bad=bad)
    )
    assert diagnosed[0]["scan"]["value"] == "nan"
    assert diagnosed[0]["values"][0] == ["nan", 2]
    assert sorted(map(str, diagnosed[0]["values"][1:])) == ["['inf', 1]", "[-0.25, 1]"]
    ids = torch.tensor([[1, 2**62], [2**62, 5]])
    faults.handler(make_violation("embedding.indices", ids, 0, 10, {"indices": ids}))
    assert diagnosed[1]["values"] == [[str(2**62), 2]] and diagnosed[1]["index"] == [0, 1]


def test_rank_from_the_launcher():
    program = (
        "import sys; sys.path.insert(0, %r); from trapline._fault import write; print(write.process_facts())"
    )
    for variable in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        environment = {k: v for k, v in os.environ.items() if k not in write._RANK_VARIABLES}
        environment[variable] = "3"
        command = [sys.executable, "-c", program % os.path.join(ROOT, "python")]
        out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        assert eval(out)["rank"] == 3
