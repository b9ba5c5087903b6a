"""Batches that a library makes: of an iterable set that gives out whole ones, or of no DataLoader at all."""

from __future__ import annotations

from typing import Any, Optional

import pytest
from conftest import label_violation, table_violation

torch = pytest.importorskip("torch")
import trapline._fault as fault  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset  # noqa: E402
from trapline._fault.data import drawn  # noqa: E402

ROWS = 8


@pytest.fixture(autouse=True)
def installed() -> Any:
    fault.install()
    yield
    fault.uninstall()


def batch_of(number: int) -> dict[str, Any]:
    categories = torch.arange(2 * ROWS).reshape(ROWS, 2) % 5
    if number == 2:
        categories[5, 0] = 12
    return {
        "past_target": torch.rand(ROWS, 4),
        "feat_static_cat": categories,
        "item_id": [f"{number}_{row}" for row in range(ROWS)],
    }


def asked(ids: Any) -> Optional[dict[str, Any]]:
    return drawn.sample_facts(ids, {"first": int((ids >= 12).nonzero()[0][0]), "lo": 0, "hi": 12}, None)


def test_a_loop_over_a_librarys_own_loader() -> None:
    for number, batch in enumerate(map(batch_of, range(3))):
        ids = batch["feat_static_cat"][:, 0]
        if number == 2:
            assert asked(ids) == {"row": 5, "batch": 2, "key": "2_5"}


def test_the_hook_of_a_trainer() -> None:
    def training_step(batch: dict[str, Any], batch_idx: int) -> Optional[dict[str, Any]]:
        return asked(torch.chunk(batch["feat_static_cat"], 2, dim=-1)[0].squeeze(-1))

    assert training_step(batch_of(2), 7) == {"row": 5, "batch": 7, "key": "2_5"}


def test_what_is_no_batch() -> None:
    for weights in [{"one": torch.arange(13), "two": torch.arange(4)}]:  # of different lengths
        assert asked(weights["one"]) is None
    for x, ids in [(torch.rand(ROWS, 2), torch.arange(ROWS) + 5)]:
        assert asked(ids) == {"row": 7}
        assert asked(ids.flip(0) + x.long()[:, 0] * 0) is None  # another tensor


def test_a_stream_of_whole_batches(facts_of: Any) -> None:
    class Stream(IterableDataset):
        def __iter__(self) -> Any:
            return map(batch_of, range(4))

    for batch in DataLoader(Stream(), batch_size=None):
        ids = batch["feat_static_cat"]
        if bool((ids >= 12).any()):
            sample = facts_of(table_violation(torch.zeros(12, 2), ids))["sample"]
            break
    assert (sample["batch"], sample["row"]) == (2, 5)


def test_the_label_that_a_mask_took(facts_of: Any) -> None:
    """Six of eight labels, too few and too equal to be known by their values alone."""
    data = torch.utils.data.TensorDataset(torch.arange(8) % 2, torch.tensor([1, 3, 1, 3, 1, 3, 1, 3]))
    for kind, label in DataLoader(data, batch_size=8):
        chosen = kind == 1
        facts = facts_of(label_violation(torch.zeros(4, 3), label[chosen]))
    assert facts["sample"]["batch"] == 0


def test_a_record_of_tensors_that_a_loop_is_at(facts_of: Any) -> None:
    """Each record is a page: its tensors have a row for each word, as a batch has for each sample."""
    pages = [(torch.arange(20), torch.arange(60).reshape(20, 3) % (7 if at != 2 else 30)) for at in range(4)]
    found = []
    for words, boxes in pages:
        given = boxes[None][..., 0]
        if bool((given >= 12).any()):
            found.append(facts_of(table_violation(torch.zeros(12, 2), given)).get("sample"))
    assert len(words) == 20 and len(found) == 1
    assert (found[0]["dataset_index"], found[0]["dataset"]["name"]) == (2, "pages")
    assert (found[0]["by"], found[0]["likely"]) == ("loop", True)
