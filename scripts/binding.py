"""Makes python/trapline/_library/capi.py, the C face for ctypes, of the headers in include/trapline.

    python scripts/binding.py           prints the module
    python scripts/binding.py --write   writes it

Numbers, structures and signatures have their one home in the headers; tests/house compares the module with
what this prints. The headers keep to a plain form: one enum, structure, constant or function after another.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ("types.h", "capi.h", "device.h")
MODULE = ROOT / "python" / "trapline" / "_library" / "capi.py"

_PLAIN = {
    "int": "c_int",
    "int32_t": "c_int32",
    "int64_t": "c_int64",
    "uint64_t": "c_uint64",
    "size_t": "c_size_t",
    "double": "c_double",
}
_WIDTH = 110
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_PIECE = re.compile(
    r"^\#define\s+(?P<macro>TRAPLINE_\w+)\s+(?P<number>\d+)$"
    r"|^(?:typedef\s+)?enum\s*\{(?P<enum>[^}]*)\}"
    r"|^typedef\s+struct\s*\{(?P<struct>[^}]*)\}\s*(?P<name>\w+)\s*;"
    r"|^TRAPLINE_API\s+(?P<result>[^(]+?)(?P<function>trapline_\w+)\((?P<parameters>[^)]*)\)\s*;",
    re.MULTILINE,
)
_DECLARATION = re.compile(
    r"(?P<type>(?:const\s+)?\w+[\s*]*?)\s*(?P<names>\w+(?:\[\w+\])?(?:\s*,\s*\w+(?:\[\w+\])?)*)$"
)

BEGINNING = '''"""The C face of libtrapline for ctypes: numbers, structures, signatures.

Made by scripts/binding.py of the headers in include/trapline, which say what each is: do not edit.
"""

from __future__ import annotations

import ctypes
from typing import Any
'''


def class_name(name: str) -> str:
    """``trapline_device_check``: ``DeviceCheck``."""
    return "".join(word.capitalize() for word in name.removeprefix("trapline_").split("_"))


def constants(body: str) -> list[tuple[str, str]]:
    """Names and numbers of an enum."""
    found = []
    value = -1
    for item in filter(None, (item.strip() for item in body.split(","))):
        name, _, given = (part.strip() for part in item.partition("="))
        value = int(given) if given else value + 1
        found.append((name, str(value)))
    return found


def ctype(text: str, structures: set[str], *, result: bool = False) -> str:
    """A type of C as ctypes has it."""
    name = text.replace("const", "").replace(" ", "")
    pointer = name.count("*")
    name = name.rstrip("*")
    if name == "char" and pointer == 1:
        # What is to be released, or filled, goes by its address: ctypes would make text of it.
        return "ctypes.c_char_p" if "const" in text else "ctypes.c_void_p"
    if name == "char" and pointer == 2:
        return "ctypes.POINTER(ctypes.c_void_p)"
    if name in ("void", "uint8_t") and pointer == 1:
        return "ctypes.c_void_p"
    if name == "void" and result:
        return "None"
    plain = class_name(name) if name in structures else f"ctypes.{_PLAIN[name]}"
    return f"ctypes.POINTER({plain})" if pointer else plain


def fields(body: str, structures: set[str]) -> list[tuple[str, str]]:
    """Names and types of a structure's members."""
    found = []
    for line in filter(None, (" ".join(line.split()) for line in body.split(";"))):
        match = _DECLARATION.match(line)
        assert match, f"this member is not plain: {line}"
        for name in re.split(r"\s*,\s*", match["names"]):
            plain, _, length = name.rstrip("]").partition("[")
            kind = ctype(match["type"], structures)
            found.append((plain, f"{kind} * {length.removeprefix('TRAPLINE_')}" if length else kind))
    return found


def signature(name: str, result: str, types: list[str]) -> list[str]:
    """The lines that tell ctypes of a function, as ruff would break them."""
    line = f"    lib.{name}.argtypes = [{', '.join(types)}]"
    if len(line) > _WIDTH:
        line = "\n".join([f"    lib.{name}.argtypes = [", *(f"        {one}," for one in types), "    ]"])
    return [f"    lib.{name}.restype = {result}", line]


def module(text: str) -> str:
    """The module for the text of the headers."""
    text = _COMMENT.sub("", text)
    numbers: list[tuple[str, str]] = []
    structures: dict[str, str] = {}
    functions: list[str] = []
    seen: set[str] = set()
    for piece in _PIECE.finditer(text):
        if piece["macro"]:
            numbers.append((piece["macro"], piece["number"]))
        elif piece["enum"] is not None:
            numbers += constants(piece["enum"])
        elif piece["struct"] is not None:
            members = fields(piece["struct"], seen)
            seen.add(piece["name"])
            lines = [f'        ("{name}", {kind}),' for name, kind in members]
            structures[piece["name"]] = "\n".join(
                [
                    f"class {class_name(piece['name'])}(ctypes.Structure):",
                    f'    """{piece["name"]} of include/trapline."""\n',
                    "    _fields_ = [",
                    *lines,
                    "    ]",
                ]
            )
        else:
            given = [" ".join(part.split()) for part in piece["parameters"].split(",")]
            types = []
            for parameter in given if given != ["void"] else []:
                match = _DECLARATION.match(parameter)
                assert match, f"this parameter is not plain: {parameter}"
                types.append(ctype(match["type"], seen))
            result = ctype(" ".join(piece["result"].split()), seen, result=True)
            functions += signature(piece["function"], result, types)
    declared = len(re.findall(r"^TRAPLINE_API|^typedef|^enum|^#define TRAPLINE_\w+ \d", text, re.MULTILINE))
    found = sum(1 for _ in _PIECE.finditer(text))
    assert declared == found, f"{declared - found} declarations of the headers were not understood"
    return "\n".join(
        [
            BEGINNING,
            *(f"{name.removeprefix('TRAPLINE_')} = {number}" for name, number in numbers),
            "",
            "",
            "\n\n\n".join(structures.values()),
            "",
            "",
            "def declare(lib: Any) -> None:",
            '    """Set the types of the functions of a loaded library."""',
            *functions,
            "",
        ]
    )


def main() -> None:
    """Print or write the module."""
    text = module("\n".join((ROOT / "include" / "trapline" / name).read_text("utf-8") for name in HEADERS))
    if "--write" in sys.argv[1:]:
        MODULE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
