"""Writes src/check/stacks.def: which setting of a model's configuration is the length of which list of
layers.

    PYTHON scripts/model_stacks.py

PYTHON needs the project's torch, transformers and safetensors. Nobody reads the sources: each
architecture that can
be made small is made twice, the second time with one setting greater by one; the list of layers that
then has one
more is the list of that setting. Lists that no setting changes (a stack of convolutions, layers that
share their
weights, the parts of a head) are in no row, and `trapline check model` says nothing about them.
"""

import contextlib
import io
import os
import re
import signal
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "check"))

import families  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors import safe_open  # noqa: E402

SECONDS = (
    12  # for one class: a large one is left out, and `trapline check model` says nothing about its layers
)
# "vision.encoder.layers" and "3" of "vision.encoder.layers.3.fc1.weight": the first number of a name.
STACK = re.compile(r"((?:[^.]*[^.0-9][^.]*\.)*?[^.]*[^.0-9][^.]*)\.(\d+)\.")
HEAD = """\
// Which setting of config.json is the length of which list of layers. Made by scripts/model_stacks.py from
// the classes of transformers {version}: a row was seen, as a list that grew by one with its setting.
// TRAPLINE_STACK(setting, with a dot before it where it is in a part; what stands before the layers' numbers;
//                the model_types)
"""


def saved(model) -> dict[str, set[int]]:
    """The lists of layers in what save_pretrained writes: {"encoder.layer": {0, 1}}."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        found: dict[str, set[int]] = defaultdict(set)
        for file in Path(folder).glob("*.safetensors"):
            with safe_open(file, "pt") as tensors:
                for name in tensors.keys():  # noqa: SIM118 - it is no dictionary
                    if number := STACK.match(name):
                        found[number[1]].add(int(number[2]))
        return found


def lengths(config: dict, path: tuple[str, ...] = ()):
    """The paths and values of the settings that could be a length."""
    for name, value in config.items():
        if isinstance(value, dict) and len(path) < 2:
            yield from lengths(value, (*path, name))
        elif (
            isinstance(value, int)
            and not isinstance(value, bool)
            and 1 <= value <= 48
            and name in families.LAYERS
        ):
            yield (*path, name), value


def changed(given: dict, path: tuple[str, ...], value: int) -> dict:
    if len(path) == 1:
        return {**given, path[0]: value}
    return {**given, path[0]: changed(given.get(path[0], {}), path[1:], value)}


def stacks(name: str):
    """(setting, list of layers) of one class."""
    given = families.settings(name)
    model = families.make(name, given)
    before = saved(model)
    for path, value in lengths(model.config.to_dict()):
        try:
            after = saved(families.make(name, changed(given, path, value + 1)))
        except Exception:
            continue
        for stack, numbers in after.items():
            if numbers == set(range(value + 1)) and before.get(stack) == set(range(value)):
                yield ".".join(path), stack


def rows_of(family: str) -> list[tuple[str, str, str]]:
    torch.set_num_threads(1)
    found: list[tuple[str, str, str]] = []
    for name in families.classes(family):
        signal.signal(signal.SIGALRM, families.too_slow)
        signal.alarm(SECONDS)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                found += [(setting, stack, family) for setting, stack in stacks(name)]
        except Exception as error:
            print(f"{family}: {name}: {str(error)[:100]}", file=sys.stderr)
        finally:
            signal.alarm(0)
    return found


def main() -> None:
    rows: dict[tuple[str, str], set[str]] = defaultdict(set)
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for found in pool.map(rows_of, families.families()):
            for setting, stack, family in found:
                rows[setting, stack].add(family)
            write(rows)


def write(rows: dict[tuple[str, str], set[str]]) -> None:
    text = HEAD.format(version=transformers.__version__)
    for (setting, stack), types in sorted(rows.items()):
        text += f'TRAPLINE_STACK("{setting}", "{stack}", "{"|".join(sorted(types))}")\n'
    (ROOT / "src" / "check" / "stacks.def").write_text(text)


if __name__ == "__main__":
    main()
