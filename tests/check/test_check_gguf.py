"""`trapline check model` and `check finite` on .gguf files, sound and with one mistake each."""

import struct
from pathlib import Path

import pytest
from checking import only_finding, report, run
from gguf_files import F32, METADATA, TENSORS, floats, write_gguf


def test_a_sound_file_is_clean(tmp_path: Path) -> None:
    clean = report("model", write_gguf(tmp_path / "m.gguf", METADATA, TENSORS), exit_code=0)
    assert "352 values in 2 columns of 1 file checked" in clean["notes"]
    report("model", tmp_path, exit_code=0)  # a folder that holds just this
    report("finite", tmp_path / "m.gguf", exit_code=0)


MISTAKES = [
    ({**METADATA, "tokenizer.ggml.tokens": ["a"] * 12}, TENSORS, "TL201",
     "the vocabulary has 12 tokens, but `token_embd.weight` has 10 rows"),
    ({**METADATA, "tokenizer.ggml.eos_token_id": 10}, TENSORS, "TL103",
     "tokenizer.ggml.eos_token_id is 10, but the vocabulary has 10 tokens: valid ids are [0, 10)"),
    ({**METADATA, "llama.embedding_length": 64}, TENSORS, "TL201",
     "llama.embedding_length is 64, but `token_embd.weight` has 32 columns"),
    ({**METADATA, "llama.block_count": 3}, TENSORS, "TL204",
     "llama.block_count is 3, but the file holds no tensor of `blk.2`"),
    (METADATA, {**TENSORS, "output_norm.weight": (F32, [32], floats(31) + floats(1, float("nan")))}, "TL109",
     "output_norm.weight[31] is nan: 1 of 32 values is not finite"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("metadata", "tensors", "code", "summary"), MISTAKES, ids=[row[2] for row in MISTAKES]
)
def test_a_mistake_is_named(tmp_path: Path, metadata: dict, tensors: dict, code: str, summary: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", metadata, tensors)
    finding = only_finding("model", path)
    assert (finding["code"], finding["summary"]) == (code, f"{path}: {summary}")


def test_an_id_of_no_token_and_a_part_of_a_split_model_are_fine(tmp_path: Path) -> None:
    metadata = {
        **METADATA,
        "tokenizer.ggml.padding_token_id": 0xFFFFFFFF,
        "split.count": 2,
        "llama.block_count": 9,
    }
    report("model", write_gguf(tmp_path / "m.gguf", metadata, TENSORS), exit_code=0)


def test_a_file_that_ends_too_early_or_lies(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "m.gguf", METADATA, TENSORS).read_bytes()
    cut = tmp_path / "cut.gguf"
    for size in [0, 3, 4, 12, 23, 30, 200, 400, len(whole) - 1]:
        cut.write_bytes(whole[:size])
        done = run("model", cut)
        assert done.returncode == 2, size
        assert "trapline: cannot read" in done.stderr and done.stderr.count("\n") == 1, (size, done.stderr)
    cut.write_bytes(whole[:-1])
    assert '"output_norm.weight" goes on behind its end, 1 bytes are missing' in run("model", cut).stderr
    for at in range(4, 300, 3):
        flipped = bytearray(whole)
        flipped[at] ^= 0xFF
        cut.write_bytes(bytes(flipped))
        assert run("model", cut).returncode in (0, 1, 2), at
    cut.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 2**63, 2**63))
    assert "the header claims" in run("model", cut).stderr
