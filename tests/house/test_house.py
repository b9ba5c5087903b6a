"""The house rules that a machine can check: includes point downward, files stay small, no private paths."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Which rooms a room may include. DESIGN: arrows only downward.
MAY_INCLUDE = {
    "core": set(),
    "jsonio": {"core"},
    "checks": {"core"},
    "contracts": {"core", "checks"},
    "diagnose": {"core", "jsonio", "checks", "contracts", "catalogue"},
    "catalogue": {"core"},
    "bytes": {"core"},
    "log": {"core", "bytes", "catalogue", "diagnose"},
    "report": {"core", "jsonio"},
    "run": {"core", "report"},
    "supervise": {"core", "log", "report", "run"},
    "doctor": {"core", "jsonio", "report", "run"},
    "inputs": {"core", "bytes"},
    "cuda": {"core", "checks", "contracts"},
    "capi": {"core", "jsonio", "checks", "contracts", "diagnose", "report", "inputs", "cuda", "check"},
    "check": {"core", "jsonio", "checks", "contracts", "diagnose", "inputs"},
    "guard": set(),  # compiled against the user's torch: sees libtrapline only through its C face
    "kernel": set(),  # fits any torch and any Python: sees libtrapline only through its C face
    "guard/preload": {"guard", "jsonio"},  # goes into C++ programs, and knows nothing of torch
    "fakecuda": {"cuda"},  # the kernels' host build
    "cpu_cuda": set(),  # compiled against the user's torch, and knows nothing of Trapline
    "cli": {
        "core",
        "checks",
        "contracts",
        "diagnose",
        "catalogue",
        "log",
        "report",
        "run",
        "supervise",
        "doctor",
        "inputs",
        "check",
    },
}
# The face of a room: the headers that other rooms include. All of core is its face.
PUBLIC = {
    "bytes": {
        "bytes/decompress.hpp",
        "bytes/source.hpp",
    },
    "capi": set(),
    "catalogue": {
        "catalogue/asserts.hpp",
        "catalogue/fold.hpp",
        "catalogue/hints.hpp",
        "catalogue/ends.hpp",
        "catalogue/last_words.hpp",
        "catalogue/patterns.hpp",
        "catalogue/wordings.hpp",
        "catalogue/xids.hpp",
    },
    "check": {
        "check/dataset.hpp",
        "check/files.hpp",
        "check/model.hpp",
        "check/scan.hpp",
        "check/tally_json.hpp",
        "check/verdict.hpp",
        "check/workers.hpp",
    },
    "checks": {
        "checks/element.hpp",
        "checks/reason.hpp",
        "checks/reference_walk.hpp",
        "checks/scan.hpp",
        "checks/walk.hpp",
    },
    "cli": set(),
    "contracts": {
        "contracts/check_call.hpp",
        "contracts/contract.hpp",
        "contracts/offenders.hpp",
        "contracts/plan_call.hpp",
    },
    "cpu_cuda": set(),
    "cuda": {
        "cuda/kernels/args.hpp",
        "cuda/kernels/check_body.hpp",
        "cuda/kernels/mask_body.hpp",
        "cuda/launch.hpp",
        "cuda/process.hpp",
    },
    "diagnose": {
        "diagnose/bare.hpp",
        "diagnose/diagnose.hpp",
        "diagnose/host/errors.hpp",
        "diagnose/json/read_facts.hpp",
        "diagnose/violation/rule_words.hpp",
    },
    "doctor": {
        "doctor/cache.hpp",
        "doctor/doctor.hpp",
        "doctor/places.hpp",
    },
    "fakecuda": set(),
    "guard": set(),
    "kernel": set(),
    "inputs": {
        "inputs/gguf_header.hpp",
        "inputs/mapped_file.hpp",
        "inputs/png_colours.hpp",
        "inputs/surroundings.hpp",
        "inputs/reader.hpp",
    },
    "jsonio": {
        "jsonio/access.hpp",
        "jsonio/dump.hpp",
        "jsonio/scalar.hpp",
    },
    "log": {
        "log/line.hpp",
        "log/read/job_folder.hpp",
        "log/read/reader.hpp",
        "log/reason/reasoner.hpp",
    },
    "report": {
        "report/collected.hpp",
        "report/details.hpp",
        "report/ends.hpp",
        "report/folder.hpp",
        "report/lost_mark.hpp",
        "report/html/page.hpp",
        "report/json.hpp",
        "report/lines.hpp",
        "report/merge.hpp",
        "report/report_socket.hpp",
        "report/style.hpp",
        "report/text.hpp",
        "report/utf8.hpp",
        "report/writer.hpp",
    },
    "run": {
        "run/environment.hpp",
        "run/exit_status.hpp",
        "run/find_program.hpp",
        "run/locate.hpp",
        "run/options.hpp",
        "run/report_folder.hpp",
        "run/session.hpp",
    },
    "supervise": {
        "supervise/options.hpp",
        "supervise/supervisor.hpp",
    },
}
# A room in folders: which of its folders a folder may include. Headers beside the folders belong to all.
MAY_INCLUDE_INSIDE = {
    "guard": {  # by the language of the program
        "python": set(),
        "cpp": set(),
        "preload": set(),
    },
    "log": {
        "clean": set(),
        "read": {"clean"},
        "events": {"clean"},
        "reason": {"clean", "events"},
    },
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def upward_includes(room: str, text: str) -> list:
    """Includes in ``text``, a file of ``room``, that reach a room it may not see."""
    found = []
    for target in INCLUDE.findall(text):
        other = target.split("/", 1)[0]
        if "/" in target and other in MAY_INCLUDE and other != room and other not in MAY_INCLUDE[room]:
            found.append(target)
    return found


def hidden_includes(room: str, text: str) -> list:
    """Includes in ``text``, a file of ``room``, of another room's headers that are not its face."""
    found = []
    for target in INCLUDE.findall(text):
        other = target.split("/", 1)[0]
        if other != room and other in PUBLIC and target not in PUBLIC[other]:
            found.append(target)
    return found


def sideways_includes(room: str, folder: str, text: str) -> list:
    """Includes in ``text``, a file of ``folder`` in ``room``, of a folder of the room that it may not see."""
    table = MAY_INCLUDE_INSIDE[room]
    found = []
    for target in INCLUDE.findall(text):
        parts = target.split("/")
        if parts[0] == room and len(parts) > 2 and parts[1] != folder and parts[1] not in table[folder]:
            found.append(target)
    return found


def room_of(path: Path) -> str:
    """The room of a file in src; a folder of a room with rules of its own is one."""
    parts = path.relative_to(ROOT / "src").parts
    folder = "/".join(parts[:2])
    return folder if folder in MAY_INCLUDE else parts[0]


def tracked(*patterns: str) -> list:
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [ROOT / name for name in names.stdout.splitlines() if (ROOT / name).is_file()]


def test_the_rule_notices_an_upward_include():
    assert upward_includes("core", '#include "report/json.hpp"\n') == ["report/json.hpp"]
    assert upward_includes("guard", '#include "checks/scan.hpp"\n') == ["checks/scan.hpp"]
    assert upward_includes("report", '#include "core/finding.hpp"\n#include "report/json.hpp"\n') == []


def test_includes_point_downward():
    wrong = []
    for path in tracked(
        "src/**/*.cpp", "src/**/*.hpp", "src/**/*.h", "src/**/*.c", "src/*/*.cpp", "src/*/*.hpp"
    ):
        room = room_of(path)
        assert room in MAY_INCLUDE, f"new room {room}: say in MAY_INCLUDE what it may include"
        wrong += [f"{path.relative_to(ROOT)} includes {t}" for t in upward_includes(room, path.read_text())]
    assert wrong == []


# Who writes English for users: the diagnosis, the writers of reports, the reasoner over logs. Besides these
# only the error lines and the commands do. A finding's words are its summary, its fixes and its evidence.
WRITES_WORDS = (
    "src/diagnose/",
    "src/report/",
    "src/log/reason/",
    "src/cli/",
    "src/check/model",  # the reasoner over model folders: a rule stands beside the words it says
    "src/supervise/",  # decisions and the status page: words about findings, never a finding's own
    "src/guard/preload/fault.cpp",  # the bare finding, for when the diagnosis itself has failed
)
WORDS = re.compile(
    r"(?:\.|->)(?:summary|fix|evidence)\b\s*(?:=(?!=)|\+=|\.(?:push_back|emplace_back|insert|assign|append)\b)"
    r'|\{\s*"summary"\s*,'
)


def foreign_words(name: str, text: str) -> list:
    """What fills the words of a finding in ``text``, a file that is none of ``WRITES_WORDS``."""
    if name.startswith(WRITES_WORDS):
        return []
    return [f"{name}: {found.group()}" for found in WORDS.finditer(text)]


def test_the_rule_notices_foreign_words():
    for line in (
        'finding.summary = "x";',
        'f->summary += "x";',
        'finding.fix.emplace_back("x");',
        "finding.evidence.push_back({source, line, text});",
        'json{{"summary", text}}',
    ):
        assert foreign_words("src/check/verdict.cpp", line), line
        assert not foreign_words("src/diagnose/data.cpp", line), line
    for line in ("if (finding.summary == text)", 'error.why = "x";', "out << finding.fix.front();"):
        assert not foreign_words("src/check/verdict.cpp", line), line


def test_english_for_users_is_written_in_three_rooms():
    wrong = []
    for path in tracked("src/**/*.cpp", "src/**/*.hpp", "src/*/*.cpp", "src/*/*.hpp"):
        name = str(path.relative_to(ROOT))
        wrong += foreign_words(name, path.read_text())
    assert wrong == [], "facts go to src/diagnose, which has the words"


# Where JSON is read or written: at the borders of the process, of the language, and of files. Between rooms
# of one process go structures.
JSON_BORDERS = (
    "src/jsonio/",
    "src/diagnose/json/",  # facts of the guard: from Python, and from C++ programs
    "src/capi/",
    "src/doctor/json.cpp",  # what the Python that was asked says; the answer
    "src/report/json",  # reports
    "src/report/gitlab.cpp",
    "src/report/sarif.cpp",
    "src/report/collected.cpp",
    "src/log/read/job_folder.cpp",  # files of a job's folder
    "src/inputs/json_",  # data sets
    "src/check/bounded_json",  # files of model folders
    "src/check/adapter.cpp",
    "src/check/model",
    "src/check/token_ranks",
    "src/check/tokenizer.cpp",
    "src/check/tally_json",  # tallies of the processes that share a check
    "src/supervise/requests.cpp",  # files that the server's processes share with the supervisor
    "src/supervise/samples.cpp",  # the quarantine file
    "src/supervise/status_json.cpp",
    "src/supervise/surroundings.cpp",  # torchrun's error file
    "src/guard/preload/",  # goes into C++ programs: facts go through the C face
)


def test_json_is_read_and_written_at_the_borders_only():
    users = [
        str(path.relative_to(ROOT))
        for path in tracked("src/**/*.cpp", "src/**/*.hpp", "src/*/*.cpp", "src/*/*.hpp")
        if "nlohmann" in path.read_text()
    ]
    assert [name for name in users if not name.startswith(JSON_BORDERS)] == []
    assert all(any(name.startswith(border) for name in users) for border in JSON_BORDERS), "a border is gone"


def test_the_rule_notices_a_header_that_is_not_a_room_s_face():
    inside = '#include "log/events/frames.hpp"\n'
    assert hidden_includes("cli", inside) == ["log/events/frames.hpp"]
    assert hidden_includes("log", inside) == []
    assert hidden_includes("cli", '#include "log/line.hpp"\n') == []


def test_the_rule_notices_a_stage_that_looks_ahead():
    ahead = '#include "log/line.hpp"\n#include "log/reason/decide.hpp"\n'
    assert sideways_includes("log", "events", ahead) == ["log/reason/decide.hpp"]
    assert sideways_includes("log", "reason", ahead) == []


def test_rooms_are_entered_by_their_face():
    assert {
        header for face in PUBLIC.values() for header in face if not (ROOT / "src" / header).is_file()
    } == set()
    assert set(PUBLIC) == {path.name for path in (ROOT / "src").iterdir() if path.is_dir()} - {"core"}
    wrong, used = [], set()
    for path in tracked("src/**/*.cpp", "src/**/*.hpp", "src/**/*.h", "src/**/*.c", "src/**/*.cu"):
        room = path.relative_to(ROOT / "src").parts[0]
        text = path.read_text()
        wrong += [f"{path.relative_to(ROOT)} includes {t}" for t in hidden_includes(room, text)]
        used |= {t for t in INCLUDE.findall(text) if t.split("/", 1)[0] != room}
    assert wrong == []
    assert {header for face in PUBLIC.values() for header in face} - used == set(), "nobody else includes it"


def test_a_room_s_folders_keep_their_order():
    wrong = []
    for room, table in MAY_INCLUDE_INSIDE.items():
        assert {p.name for p in (ROOT / "src" / room).iterdir() if p.is_dir()} == set(table)
        for path in tracked(f"src/{room}/*/*.cpp", f"src/{room}/*/*.hpp"):
            folder = path.relative_to(ROOT / "src" / room).parts[0]
            found = sideways_includes(room, folder, path.read_text())
            wrong += [f"{path.relative_to(ROOT)} includes {t}" for t in found]
    assert wrong == []


BY_NAME = re.compile(
    r"""\bid(?:\s*==\s*|\.starts_with\(|\.ends_with\()"|find_wording_id\("|"\s*==\s*\w+(?:->|\.)id\b"""
)


def test_rows_act_by_their_columns():
    """No code asks for a row of the catalogue by its name: what a row does is said in the row."""
    assert BY_NAME.search('if (row.id == "hint.dsa")') and BY_NAME.search('row.id.starts_with("yolo")')
    wrong = []
    for path in tracked("src/log/**/*.cpp", "src/catalogue/*.cpp", "src/cli/*.cpp"):
        found = [line.strip() for line in path.read_text().splitlines() if BY_NAME.search(line)]
        wrong += [f"{path.relative_to(ROOT)}: {line}" for line in found]
    assert wrong == []


def test_the_picture_of_the_rooms_is_that_of_the_code():
    drawn = subprocess.run(
        [sys.executable, ROOT / "scripts" / "rooms.py"], check=True, capture_output=True, text=True
    ).stdout
    assert (ROOT / "docs" / "rooms.md").read_text() == drawn, "run: python scripts/rooms.py --write"
    names = set(re.findall(r'\["(.+?)"\]', drawn))
    whole = {room for room in MAY_INCLUDE if "/" not in room}
    assert whole | {"_boot", "_fault/data", "_guard"} <= names


def test_rooms_exist():
    assert {p.name for p in (ROOT / "src").iterdir() if p.is_dir()} == {
        room.split("/")[0] for room in MAY_INCLUDE
    }


def test_main_is_short():
    assert len((ROOT / "src/cli/main.cpp").read_text().splitlines()) < 50


def test_files_stay_small():
    large = {}
    for path in tracked("*.cpp", "*.hpp", "*.h", "*.c", "*.py", "*.sh"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > 500:
            large[str(path.relative_to(ROOT))] = lines
    assert large == {}, "a file above 500 lines asks to be split"


def test_no_path_of_a_machine():
    # /home/u/ and /home/user/ are nobody's: they stand in made-up logs.
    private = re.compile(r"/(?:home|root|work|Users)/(?!u/|user/)[a-z0-9_.-]+/")
    leaks = []
    for path in tracked():
        if path.suffix in {".png", ".gz"} or path == Path(__file__):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if str(ROOT) in text:
            leaks.append(str(path.relative_to(ROOT)))
        elif path.suffix not in {".txt", ".json", ".jsonl", ".log"} and private.search(text):
            leaks.append(f"{path.relative_to(ROOT)}: {private.search(text).group()}")
    assert leaks == []


KNOWS_PYTHON = re.compile(
    r"Python\.h|pybind11|torch/extension\.h|torch/csrc/(?:autograd/)?python|\bPy(?!Torch)[A-Z_]\w+"
)


def test_python_is_known_in_one_folder_of_the_guard():
    """The guard for C++ programs is the same guard without that folder."""
    assert KNOWS_PYTHON.search("#include <Python.h>") and KNOWS_PYTHON.search("PyObject* frame;")
    files = tracked("src/guard/*.cpp", "src/guard/*.hpp", "src/guard/*.h", "src/guard/*.c")
    names = [str(path.relative_to(ROOT)) for path in files if KNOWS_PYTHON.search(code_of(path))]
    assert any(name.startswith("src/guard/python/") for name in names)
    assert [name for name in names if not name.startswith("src/guard/python/")] == []


def code_of(path: Path) -> str:
    """The text of a C or C++ file without its comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
