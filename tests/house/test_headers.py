"""The C face: headers that C99 and C++ can read, one home for its numbers, one writer of what crosses it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = sorted(path.name for path in (ROOT / "include" / "trapline").glob("*.h"))


def sources(*folders: str) -> dict:
    """Text by path of our own code."""
    endings = {".cpp", ".hpp", ".h", ".c", ".cu", ".py"}
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in endings]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(paths)}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("language", [["cc", "-xc", "-std=c99"], ["c++", "-xc++", "-std=c++11"]])
def test_each_header_stands_alone(header, language):
    compiler = shutil.which(language[0])
    if compiler is None:
        pytest.skip("no compiler here")
    flags = ["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{ROOT / 'include'}"]
    done = subprocess.run(
        [compiler, *language[1:], *flags, "-"],
        input=f"#include <trapline/{header}>\n",
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_binding_is_made_of_the_headers():
    made = subprocess.run(
        [sys.executable, ROOT / "scripts" / "binding.py"], check=True, capture_output=True, text=True
    ).stdout
    module = ROOT / "python" / "trapline" / "_library" / "capi.py"
    assert module.read_text(encoding="utf-8") == made, "run: python scripts/binding.py --write"


def test_what_the_script_does_not_understand_is_an_error():
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import binding
    finally:
        sys.path.pop(0)
    assert "X = 7" in binding.module("#define TRAPLINE_X 7\n").splitlines()
    assert "B = 6" in binding.module("enum {\n  TRAPLINE_A = 5, /* a */\n  TRAPLINE_B\n};\n").splitlines()
    for text in ("TRAPLINE_API int trapline_a(int (*f)(void));\n", "typedef int trapline_b;\n"):
        with pytest.raises((AssertionError, KeyError)):
            binding.module(text)


BY_HAND = re.compile(
    r"trapline::(?:Predicate|Bound|Reason|OnCpu|DType)\b"  # "the numbers of ..."
    r"|^_?[A-Z][A-Z_]*(?:, _?[A-Z][A-Z_]*)+ = (?:range\(|\d)"
    r"|\b(?:predicate|bound|on_cpu|reason)\b\"?\]?\)? (?:==|!=|in) \(?\d",
    re.MULTILINE,
)


def test_no_number_of_the_c_face_is_kept_by_hand():
    assert BY_HAND.search("# trapline::Reason") and BY_HAND.search("_NAN, _INF = 3, 4\n")
    assert BY_HAND.search('if row["predicate"] == 2:') and BY_HAND.search("LABELS, IDS = range(2)\n")
    own = {"python/trapline/_fault/data/variables.py"}  # numbers of that file alone
    texts = sources("python", "src/guard")
    assert [name for name, text in texts.items() if name not in own and BY_HAND.search(text)] == []


# Who calls libtrapline by its C face. The rooms that are in it share the types only.
OUTSIDE = ("src/capi/", "src/guard/", "src/kernel/")
FUNCTIONS = re.compile(r'#\s*include\s+"trapline/(?!types\.h)')


def test_the_library_does_not_call_its_own_face():
    assert FUNCTIONS.search('#include "trapline/device.h"')
    found = [name for name, text in sources("src").items() if FUNCTIONS.search(text)]
    assert [name for name in found if not name.startswith(OUTSIDE)] == []
    assert all(any(name.startswith(room) for name in found) for room in OUTSIDE)


def test_the_envelope_of_a_report_is_written_in_one_place():
    texts = sources("src", "python")
    envelope = re.compile(r"""["']schema["']\s*[:,]\s*(?:\d|kSchemaVersion)""")
    assert [name for name, text in texts.items() if envelope.search(text)] == ["src/report/json_write.cpp"]


def test_files_of_the_report_folder_are_written_in_one_place():
    """Who names the folder hands it to the library, and renames nothing itself."""
    texts = sources("src", "python")
    users = [name for name, text in texts.items() if re.search(r"report_dir\(\)|REPORT_DIR\b", text)]
    assert len(users) > 3
    assert [name for name in users if re.search(r"os\.replace|os\.rename|\brename\(", texts[name])] == []


def test_the_last_resort_is_worded_in_one_place():
    """Whoever is left with a scan alone asks libtrapline for the sentence."""
    sentence = re.compile(r"""["'][^"'\n]*(?:(?:is|are) not valid|is violated|value was found)[^\n.]""")
    assert sentence.search('f"{contract}: {bad} of {total} elements are not valid"')
    texts = sources("src/guard", "python")
    assert [name for name, text in texts.items() if sentence.search(text)] == []


def test_each_predicate_has_its_row():
    numbers = (ROOT / "include" / "trapline" / "types.h").read_text(encoding="utf-8")
    table = (ROOT / "src" / "contracts" / "predicates.def").read_text(encoding="utf-8")
    rows = re.findall(r"^TRAPLINE_PREDICATE_ROW\(\w+, (\w+),", table, re.MULTILINE)
    assert rows == re.findall(r"^  TRAPLINE_PREDICATE_(\w+)", numbers, re.MULTILINE)
    assert len(rows) > 10
