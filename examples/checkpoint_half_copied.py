# Wrong: a model of two files is copied to where it will be used, and the copy stops after the first; the
#   index, which is small, had come over before.
#
# Plain PyTorch: no error with `strict=False`: the missing layers keep their random numbers.
# Trapline: `trapline check model FOLDER`: TL204, the file that is missing and what it was to hold.
"""Publish a classifier of two shards: save it, then copy it to the folder that jobs read."""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

SHARDS = {"encoder": "model-00001-of-00002.safetensors", "classifier": "model-00002-of-00002.safetensors"}


def save(model: nn.Module, folder: Path) -> None:
    weights = model.state_dict()
    for part, file in SHARDS.items():
        save_file({name: value for name, value in weights.items() if name.startswith(part)}, folder / file)
    index = {"weight_map": {name: SHARDS[name.split(".")[0]] for name in weights}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    config = {"model_type": "example", "id2label": {str(i): f"class {i}" for i in range(3)}}
    (folder / "config.json").write_text(json.dumps(config))


def copy(source: Path, target: Path, space: int) -> None:
    """As `cp` on a disk that gets full: the smallest files first."""
    for file in sorted(source.iterdir(), key=lambda file: file.stat().st_size):
        space -= file.stat().st_size
        if space < 0:
            print(f"no space left for {file.name}", flush=True)  # and nobody reads it
            return
        shutil.copy(file, target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fixed", action="store_true", help="on a disk with enough space")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.ModuleDict({"encoder": nn.Linear(64, 32), "classifier": nn.Linear(32, 3)})
    args.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        save(model, Path(made))
        copy(Path(made), args.folder, 1_000_000 if args.fixed else 4_000)
    print(f"published {args.folder}", flush=True)


if __name__ == "__main__":
    main()
