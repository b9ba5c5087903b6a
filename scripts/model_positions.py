"""Writes src/check/positions.def: which table of a model holds its positions, and how many of its rows a
sequence can use.

    PYTHON scripts/model_positions.py

PYTHON needs the project's torch and transformers. Nobody reads the sources: each architecture that can be
made small is made twice, the second time with a longer longest sequence; the table that grows by as many rows
is that of the positions. Then sequences as long as the table, and a little shorter ones, are put through the
model: the longest that it takes is what the table has room for.
"""

import contextlib
import io
import os
import re
import signal
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "check"))

import families  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

SECONDS = 90  # for one class
MORE = 8
SETTINGS = (
    "max_position_embeddings", "n_positions", "n_ctx", "max_target_positions", "max_source_positions",
    "max_seq_len", "max_sequence_length", "max_seq_length", "seq_length",
)  # fmt: skip
NOBODY_KNOWS = -1
HEAD = """\
// Which table holds the positions of a model, for the model_types without a row of their own in families.def.
// Made by scripts/model_positions.py from the classes of transformers {version}: the table was seen to grow
// with the setting, and sequences were put through the model.
// TRAPLINE_POSITIONS(setting, end of the table's name, rows more than the setting says, rows that no sequence
//                    reaches or -1 where that is not known, the model_types)
"""


def tables(model) -> dict[str, int]:
    return {name: len(one) for name, one in model.state_dict().items() if one.dim() == 2}


def takes(model, length: int) -> bool:
    ids = torch.full((1, length), 5)
    given = {"input_ids": ids}
    if model.config.is_encoder_decoder:
        given = {"input_ids": ids[:, :4], "decoder_input_ids": ids}
    with contextlib.suppress(Exception), torch.no_grad():
        model(**given)
        return True
    return False


def unused(model, rows: int) -> int:
    """How much shorter than the table the longest sequence is."""
    model.eval()
    if not takes(model, 4):
        return NOBODY_KNOWS
    return next((less for less in range(5) if takes(model, rows - less)), NOBODY_KNOWS)


def of_class(name: str):
    given = families.settings(name)
    model = families.make(name, given)
    config = model.config.to_dict()
    before = tables(model)
    for setting in SETTINGS:
        value = config.get(setting)
        if not isinstance(value, int) or isinstance(value, bool) or not 16 <= value <= 4096:
            continue
        with contextlib.suppress(Exception):
            longer = tables(families.make(name, {**given, setting: value + MORE}))
            grown = [one for one, rows in longer.items() if rows == before.get(one, 0) + MORE]
            grown = [one for one in grown if one.endswith(".weight")]
            # Of an encoder and a decoder the decoder's: it is the one that generates.
            grown.sort(key=lambda one: (".decoder." not in f".{one}", len(one)))
            if grown:
                table = re.sub(r"^.*?((?:[^.]+\.){1,2}weight)$", r"\1", grown[0])
                yield setting, table, before[grown[0]] - value, unused(model, before[grown[0]])


def rows_of(family: str) -> list[tuple]:
    torch.set_num_threads(1)
    for name in families.classes(family):
        signal.signal(signal.SIGALRM, families.too_slow)
        signal.alarm(SECONDS)
        try:
            with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                found = [(*row, family) for row in of_class(name)]
            if found:
                return found[:1]
        except Exception as error:
            print(f"{family}: {name}: {str(error)[:100]}", file=sys.stderr)
        finally:
            signal.alarm(0)
    return []


def main() -> None:
    rows: dict[tuple, set[str]] = defaultdict(set)
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for found in pool.map(rows_of, families.families()):
            for *row, family in found:
                rows[tuple(row)].add(family)
    text = HEAD.format(version=transformers.__version__)
    for (setting, table, extra, less), types in sorted(rows.items()):
        names = "|".join(sorted(types))
        text += f'TRAPLINE_POSITIONS("{setting}", "{table}", {extra}, {less}, "{names}")\n'
    (ROOT / "src" / "check" / "positions.def").write_text(text)


if __name__ == "__main__":
    main()
