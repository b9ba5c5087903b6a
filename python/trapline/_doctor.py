"""What only Python knows, for ``trapline doctor``: run as a program by the Python that is asked.

Every part is written as soon as it is known, one JSON object a line, into the file that the first argument
names: what comes later may hang or end the process.
"""

from __future__ import annotations

import json
import os
import re
import sys

_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main() -> None:
    with open(sys.argv[2], "w", encoding="utf-8") as facts:

        def tell(**part: object) -> None:
            facts.write(json.dumps(part) + "\n")
            facts.flush()

        tell(python=python_facts())
        if _PACKAGES not in sys.path:
            sys.path.insert(0, _PACKAGES)
        from trapline._library import options

        builds = options.forbid_builds()  # the guard comes with torch; a question must begin nothing
        torch = torch_facts()
        tell(torch=torch)
        if torch["error"]:
            return
        tell(guard=guard_facts(builds))
        tell(cuda=cuda_facts())


def python_facts() -> dict[str, object]:
    """This Python, and what runs at its start."""
    import platform

    flags = sys.flags
    # -I says -E and -s, too.
    given = {"-I": flags.isolated, "-E": flags.ignore_environment and not flags.isolated, "-S": flags.no_site}
    hook = "trapline" in sys.modules  # nothing here has imported it
    customize = [_file_of(name) for name in ("sitecustomize", "usercustomize")]
    return {
        "version": platform.python_version(),
        "executable": sys.executable or "",
        "flags": [flag for flag, is_set in given.items() if is_set],
        "hook": hook,
        "customize": [file for file in customize if file and not file.startswith(_PACKAGES)],
        "hidden": "" if hook else _file_of("sitecustomize"),
    }


def torch_facts() -> dict[str, str]:
    """The torch that a program would import; ``error``: why it cannot."""
    try:
        import torch

        version = torch.version
        return {
            "version": str(torch.__version__),
            "path": os.path.dirname(torch.__file__ or ""),
            "error": "",
            "cuda": str(version.cuda or ""),
            "hip": str(getattr(version, "hip", None) or ""),
        }
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            return {"error": "there is no torch in this Python"}
        return {"error": f"torch cannot be imported: {_one_line(error)}"}


def guard_facts(builds: str) -> dict[str, object]:
    """Which guard runs, and why not the compiled one. ``builds``: what the user says of builds."""
    try:
        from trapline import _boot
        from trapline._guard import active
        from trapline._library import options

        if active.kind() == "" and not _boot.failure():  # the start-up hook did not reach this process
            active.activate()
        options.allow_builds(builds)
        kind = active.kind()
        if kind == "":
            return {"kind": "", "what": _without_name(_boot.failure() or "none")}
        what = active.described().partition("; ")[0]
        return {"kind": kind, "what": what, **({} if kind == "native" else _why_not_compiled(active.notes()))}
    except BaseException as error:
        return {"kind": "", "what": f"no guard: {_without_name(_one_line(error))}"}


def _why_not_compiled(notes: list[str]) -> dict[str, object]:
    """In the order in which the search for it goes."""
    from trapline._extension import cache, compiler
    from trapline._library import options

    if options.adapter() in ("kernel", "pure"):
        return {"why": "TRAPLINE_ADAPTER asks for this one", "todo": "unset TRAPLINE_ADAPTER"}
    refused = [note for note in notes if "TRAPLINE_BUILD says never" not in note]
    if refused:
        return {"why": refused[0]}
    if options.build(False) == "never":
        return {"why": "TRAPLINE_BUILD says never to build it", "todo": "unset TRAPLINE_BUILD"}
    folder, why = cache.folder_to_build_in(compiler.GUARD.says)
    if folder is None:
        what, _, todo = why.partition(": ")
        return {"why": what, "todo": todo}
    try:
        compiler.recipe_for(folder, compiler.GUARD)
        path = os.path.join(folder, compiler.adapter_name(compiler.GUARD))
    except compiler.BuildError as error:
        *why, todo = re.split(r": (?![^(]*\))", _without_name(str(error)))  # "(Debian: ...)" stays whole
        return {"why": ": ".join(why), "todo": todo}
    failed = cache.failed_lately(path)
    if failed:
        return {"why": f"it {failed}", "todo": "read that file; the build is tried again after an hour"}
    if cache.is_claimed(folder):
        return {"why": "it is being built now, for the next start", "is_coming": True}
    return {
        "why": "it is not built yet: the next `trapline run` begins, in the background",
        "is_coming": True,
    }


def cuda_facts() -> dict[str, object]:
    """What torch says of the GPUs. Asking may hang where the driver does."""
    import warnings

    import torch

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            available = torch.cuda.is_available()
            return {
                "is_available": bool(available),
                "count": torch.cuda.device_count() if available else 0,
                "architectures": torch.cuda.get_arch_list() if available else [],
                "error": "; ".join(_one_line(one.message) for one in said),
            }
        except BaseException as error:
            return {"is_available": False, "count": 0, "error": _one_line(error)}


def _file_of(name: str) -> str:
    module = sys.modules.get(name)
    return os.path.abspath(getattr(module, "__file__", None) or "") if module is not None else ""


def _without_name(text: str) -> str:
    return text[len("trapline: ") :] if text.startswith("trapline: ") else text


def _one_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


if __name__ == "__main__":
    main()
