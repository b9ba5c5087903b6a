"""Every architecture of transformers that can be made small here, with random weights.

``python families.py --list`` names the families; ``python families.py OUT TYPE ...`` writes
OUT/TYPE-CLASS for the
base model and the first head of each and prints one line of JSON per folder: made, or why not. Nothing
is loaded from
the network: the configuration classes' own defaults are made smaller by name, until the model can be built.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import transformers as hf
from transformers.models.auto import modeling_auto

MOST_WEIGHTS = 30_000_000
SECONDS = 40  # for one model

# The members of a configuration that say how large a model is, and what they become.
LAYERS = {
    **dict.fromkeys(
        [
            "num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
            "num_decoder_layers", "num_encoder_layers", "depth", "num_blocks", "qformer_layers",
        ],
        2,
    )
}  # fmt: skip
TOKENS = {
    "vocab_size": 160,
    "max_position_embeddings": 64,
    "n_positions": 64,
    "max_target_positions": 64,
    "max_source_positions": 64,
}
WIDTHS = {
    **dict.fromkeys(
        ["hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_size", "word_embed_proj_dim"], 32
    ),
    **dict.fromkeys(
        [
            "intermediate_size", "ffn_dim", "d_ff", "n_inner", "hidden_dim", "encoder_ffn_dim",
            "decoder_ffn_dim",
            "moe_intermediate_size", "shared_expert_intermediate_size", "dim_feedforward",
        ],
        64,
    ),
    **dict.fromkeys(
        [
            "num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
            "decoder_attention_heads",
        ],
        4,
    ),
    **dict.fromkeys(["num_key_value_heads", "n_kv_heads", "num_kv_heads"], 2),
    **dict.fromkeys(["head_dim", "d_kv", "attention_head_size"], 8),
    **dict.fromkeys(["num_experts", "num_local_experts", "n_routed_experts"], 4),
    "num_experts_per_tok": 2,
    "projection_dim": 32,
}  # fmt: skip
RECIPES = [{**TOKENS, **LAYERS, **WIDTHS}, {**TOKENS, **LAYERS}, {**TOKENS, **WIDTHS}, TOKENS, {}]

HEADS = [
    "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES",
    "MODEL_FOR_CTC_MAPPING_NAMES",
    "MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "MODEL_FOR_PRETRAINING_MAPPING_NAMES",
]


def families() -> list[str]:
    return sorted(modeling_auto.MODEL_MAPPING_NAMES)


def classes(family: str) -> list[str]:
    """The names of the base model and of one class with a head."""
    base = modeling_auto.MODEL_MAPPING_NAMES[family]
    found = list(base[:1]) if isinstance(base, (list, tuple)) else [base]
    for head in HEADS:
        names = getattr(modeling_auto, head).get(family)
        if names:
            found.append(names[0] if isinstance(names, (list, tuple)) else names)
            break
    return list(dict.fromkeys(found))


def small(default: Any, sizes: dict[str, int]) -> dict[str, Any]:
    """What to give the configuration's class so that it becomes small."""
    given: dict[str, Any] = {}
    for name, value in default.to_dict().items():
        if name in sizes and isinstance(value, int) and not isinstance(value, bool) and value > sizes[name]:
            given[name] = sizes[name]
        if name.endswith(("_token_id", "_token_index", "suppress_tokens")):
            given.update(_ids_below(sizes.get("vocab_size"), name, value))
    for name in getattr(type(default), "sub_configs", {}):
        part = getattr(default, name, None)
        if isinstance(part, hf.PretrainedConfig):
            given[name] = {**small(part, sizes), "model_type": part.model_type}
    return given


def _ids_below(tokens: Any, name: str, value: Any) -> dict[str, Any]:
    """A configuration whose vocabulary became small would else name ids that it does not have."""
    if not tokens or value is None:
        return {}
    ids = [min(one, tokens - 1) for one in (value if isinstance(value, list) else [value])]
    return {name: ids if isinstance(value, list) else ids[0]}


class TooSlow(Exception):
    pass


def too_slow(*_: Any) -> None:
    raise TooSlow("it takes too long")


def make(name: str, given: dict[str, Any]) -> Any:
    """A model of the class with random weights, the same ones each time."""
    model_class = getattr(hf, name)
    config = model_class.config_class(**given)
    torch.manual_seed(0)
    return model_class(config)


def settings(name: str) -> dict[str, Any]:
    """What makes the configuration of the class small; ValueError says why nothing does."""
    model_class = getattr(hf, name)
    config_class = model_class.config_class
    why = "no configuration"
    for sizes in RECIPES:
        try:
            given = small(config_class(), sizes)
            if "Classification" in name:
                given["num_labels"] = 4
            with torch.device("meta"):
                count = sum(one.numel() for one in model_class(config_class(**given)).parameters())
            if count > MOST_WEIGHTS:
                why = f"{count} weights at least"
                continue
            model = make(name, given)
            ids = getattr(model, "generation_config", None)
            tokens = sizes.get("vocab_size")
            if ids is not None and any(
                isinstance(one, int) and tokens and one >= tokens
                for key, value in ids.to_dict().items()
                if key.endswith("_token_id")
                for one in (value if isinstance(value, list) else [value])
            ):
                why = "its class writes ids of the original vocabulary"
                continue
            return given
        except TooSlow:
            raise ValueError("too slow") from None
        except Exception as error:
            why = f"{type(error).__name__}: {str(error)[:120]}"
    raise ValueError(why)


def write(out: Path, family: str) -> Iterator[dict]:
    for name in classes(family):
        folder = out / f"{family}-{name}"
        row = {"family": family, "class": name, "folder": str(folder), "made": False, "why": ""}
        signal.signal(signal.SIGALRM, too_slow)
        signal.alarm(SECONDS)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                make(name, settings(name)).save_pretrained(folder)
            row["made"] = True
        except Exception as error:
            row["why"] = str(error)[:160]
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            signal.alarm(0)
        yield row


def main(words: list[str]) -> None:
    warnings.simplefilter("ignore")
    if words == ["--list"]:
        print("\n".join(families()))
        return
    out = Path(words[0])
    for family in words[1:] or families():
        for row in write(out, family):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
