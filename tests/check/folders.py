"""Model folders as transformers writes them: small, with random weights, of ten architectures and more."""

import json
from pathlib import Path
from typing import Any, Callable

import torch
import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

VOCABULARY = 120
SPECIAL = ["[PAD]", "[UNK]", "[BOS]", "[EOS]", "[MASK]"]
SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
IDS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
ROTARY = {**SMALL, **IDS, "intermediate_size": 64, "num_key_value_heads": 2, "max_position_embeddings": 64}
BERT = {**SMALL, "intermediate_size": 64, "max_position_embeddings": 64, "pad_token_id": 0}
LABELS = {"num_labels": 4}


def _bert() -> Any:
    return hf.BertForSequenceClassification(hf.BertConfig(**BERT, **LABELS))


def _roberta() -> Any:
    ids = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3}
    sizes = {key: value for key, value in BERT.items() if key != "pad_token_id"}
    sizes["max_position_embeddings"] = 66
    return hf.RobertaForSequenceClassification(hf.RobertaConfig(**sizes, **ids, **LABELS))


def _distilbert() -> Any:
    config = hf.DistilBertConfig(
        vocab_size=VOCABULARY,
        dim=32,
        hidden_dim=64,
        n_layers=2,
        n_heads=4,
        max_position_embeddings=64,
        pad_token_id=0,
        **LABELS,
    )
    return hf.DistilBertForSequenceClassification(config)


def _gpt2() -> Any:
    return hf.GPT2LMHeadModel(
        hf.GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2, n_head=4, **IDS)
    )


def _llama() -> Any:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**ROTARY))


def _mistral() -> Any:
    return hf.MistralForSequenceClassification(hf.MistralConfig(**ROTARY, **LABELS))


def _qwen2() -> Any:
    return hf.Qwen2ForCausalLM(hf.Qwen2Config(**ROTARY, tie_word_embeddings=True))


def _opt() -> Any:
    return hf.OPTForCausalLM(
        hf.OPTConfig(**SMALL, **IDS, ffn_dim=64, max_position_embeddings=62, word_embed_proj_dim=32)
    )


def _t5() -> Any:
    config = hf.T5Config(
        vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        pad_token_id=0, eos_token_id=3, decoder_start_token_id=0,
    )  # fmt: skip
    return hf.T5ForConditionalGeneration(config)


def _whisper() -> Any:
    config = hf.WhisperConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_target_positions=64,
        max_source_positions=64, num_mel_bins=8, decoder_start_token_id=2,
        suppress_tokens=None, begin_suppress_tokens=None, **IDS,
    )  # fmt: skip
    return hf.WhisperForConditionalGeneration(config)


def _vit() -> Any:
    config = hf.ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=32,
        patch_size=8,
        **LABELS,
    )
    return hf.ViTForImageClassification(config)


MODELS: dict[str, Callable[[], Any]] = {
    "bert": _bert, "roberta": _roberta, "distilbert": _distilbert, "gpt2": _gpt2, "llama": _llama,
    "mistral": _mistral, "qwen2": _qwen2, "opt": _opt, "t5": _t5, "whisper": _whisper, "vit": _vit,
}  # fmt: skip


def make_tokenizer(folder: Path) -> None:
    raw = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    words = " ".join(f"w{i}" for i in range(VOCABULARY - len(SPECIAL)))
    raw.train_from_iterator([words], trainers.WordLevelTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL))
    fast = hf.PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", bos_token="[BOS]", eos_token="[EOS]",
        mask_token="[MASK]", model_max_length=60,
    )  # fmt: skip
    fast.save_pretrained(folder)


def make_folder(folder: Path, kind: str, **save: Any) -> Path:
    torch.manual_seed(0)
    MODELS[kind]().save_pretrained(folder, **save)
    if kind != "vit":
        make_tokenizer(folder)
    return folder


def edit(path: Path, **changes: Any) -> None:
    """Sets members of a JSON file; None removes one."""
    content = json.loads(path.read_text())
    for key, value in changes.items():
        if value is None:
            content.pop(key, None)
        else:
            content[key] = value
    path.write_text(json.dumps(content))
