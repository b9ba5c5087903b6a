"""check_loss, and the checks around a DataLoader."""

import functools
from typing import Any

import pytest
import trapline

torch = pytest.importorskip("torch")
F = torch.nn.functional


def test_loss_is_handed_on() -> None:
    logits, target = torch.randn(4, 3), torch.tensor([0, 1, 2, -100])
    expected = F.cross_entropy(logits, target)
    assert trapline.check_loss(F.cross_entropy, logits, target).item() == expected.item()
    assert trapline.check_loss(torch.nn.CrossEntropyLoss(), logits, target).item() == expected.item()


@pytest.mark.parametrize(
    ("loss", "target", "code"),
    [
        (F.cross_entropy, [0, 1, 2, 3], "TL101"),
        (torch.nn.NLLLoss(), [0, 1, 2, -1], "TL101"),
        (torch.nn.CrossEntropyLoss(ignore_index=9), [0, 1, 2, -100], "TL101"),
        (functools.partial(F.cross_entropy, ignore_index=0), [0, 1, 2, 3], "TL101"),
        (torch.nn.MultiMarginLoss(), [0, 1, 2, -100], "TL101"),
    ],
)
def test_bad_targets(loss: Any, target: list, code: str) -> None:
    with pytest.raises(trapline.DeviceAssertError) as raised:
        trapline.check_loss(loss, torch.randn(4, 3), torch.tensor(target))
    assert raised.value.finding["code"] == code
    assert raised.value.finding["element"]["index"] == [3]


def test_bce() -> None:
    with pytest.raises(trapline.DeviceAssertError, match=r"takes probabilities in \[0, 1\]"):
        trapline.check_loss(F.binary_cross_entropy, torch.tensor([-0.5, 3.0]), torch.tensor([0.0, 1.0]))
    with pytest.raises(trapline.DeviceAssertError, match=r"takes probabilities in \[0, 1\]$"):
        trapline.check_loss(F.binary_cross_entropy, torch.tensor([0.5, 3.0]), torch.tensor([0.0, 1.0]))
    with pytest.raises(trapline.DeviceAssertError, match=r"input\[1\] is nan"):
        trapline.check_loss(F.mse_loss, torch.tensor([0.5, float("nan")]), torch.tensor([0.0, 1.0]))
    with pytest.raises(TypeError, match="no row for softmax"):
        trapline.check_loss(F.softmax, torch.ones(2), torch.ones(2))


class Samples(torch.utils.data.Dataset):
    def __init__(self, labels: list) -> None:
        self.labels = labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple:
        return torch.ones(3), self.labels[index]


def test_checked_loader() -> None:
    loader = torch.utils.data.DataLoader(Samples([0, 1, 2, 0, 1, 7, 2, 0]), batch_size=2)
    checked = trapline.checked(loader, num_classes=3, finite=0)
    assert len(checked) == 4
    assert checked.batch_size == 2
    seen = []
    with pytest.raises(
        trapline.DeviceAssertError, match=r"^batch 2: check_labels: labels\[1\] is 7"
    ) as raised:
        for batch in checked:
            seen.append(batch)
    assert len(seen) == 2
    assert raised.value.finding["sample"] == {"batch": 2, "row": 1}


@pytest.mark.parametrize("workers", [0, 2])
def test_checking_collate(workers: int) -> None:
    collate = trapline.checking_collate(num_classes=3)
    loader = torch.utils.data.DataLoader(
        Samples([0, 1, 2, 9]), batch_size=2, collate_fn=collate, num_workers=workers
    )
    batches = iter(loader)
    assert next(batches)[1].tolist() == [0, 1]
    with pytest.raises(trapline.DeviceAssertError, match=r"labels\[1\] is 9"):
        next(batches)


def test_a_batch_without_that_part() -> None:
    checked = trapline.checked([{"x": [1]}], labels="y", num_classes=3)
    with pytest.raises(KeyError, match="has no part 'y'"):
        next(iter(checked))
    with pytest.raises(ValueError, match="nothing to check"):
        trapline.checked([])


def model_with_nan() -> Any:
    model = torch.nn.Sequential(torch.nn.Embedding(4, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 2))
    trapline.check_finite(model)
    with torch.no_grad():
        model[2].weight[1, 0] = float("nan")
    return model


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (lambda model: model, "2.weight"),
        (lambda model: model.state_dict(), "2.weight"),
        (lambda model: {"model": model.state_dict(), "epoch": 3}, "model.2.weight"),
        (lambda model: list(model.parameters()), "3"),
        (lambda model: model.parameters(), "3"),
        (lambda model: model.named_parameters(), "2.weight"),
    ],
)
def test_weights(part: Any, name: str) -> None:
    with pytest.raises(trapline.DeviceAssertError) as raised:
        trapline.check_finite(part(model_with_nan()))
    assert str(raised.value).startswith(f"check_finite: {name}[1, 0] is nan: 1 of 4 values")


def test_eight_bit_floats() -> None:
    weights = torch.tensor([1.0, float("nan")])
    trapline.check_finite(weights[:1].to(torch.float8_e4m3fn))
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        with pytest.raises(trapline.DeviceAssertError, match=r"\[1\] is nan"):
            trapline.check_finite(weights.to(dtype))


def test_loss_with_an_ignore_index() -> None:
    logits, target = torch.randn(3, 3), torch.tensor([0, -1, 2])
    expected = F.cross_entropy(logits, target, ignore_index=-1)
    assert trapline.check_loss(F.cross_entropy, logits, target, ignore_index=-1).item() == expected.item()
    with pytest.raises(trapline.DeviceAssertError):
        trapline.check_loss(F.cross_entropy, logits, target, ignore_index=-2)
    with pytest.raises(ValueError, match="the loss was made with -100"):
        trapline.check_loss(torch.nn.CrossEntropyLoss(), logits, target, ignore_index=-1)
    with pytest.raises(TypeError, match="mse_loss has no ignore_index"):
        trapline.check_loss(F.mse_loss, logits, logits, ignore_index=-1)


@pytest.mark.parametrize("key", ["labels", "label", "label_ids"])
def test_batches_that_are_dictionaries(key: str) -> None:
    batch = {"input_ids": torch.tensor([[1, 2]]), key: torch.tensor([5])}
    assert next(iter(trapline.checked([batch], num_classes=6, num_embeddings=3))) is batch
    with pytest.raises(trapline.DeviceAssertError, match="is 5"):
        next(iter(trapline.checked([batch], num_classes=3)))
    with pytest.raises(
        KeyError, match="has none of 'labels', 'label', 'label_ids', but 'x': name the part with labels="
    ):
        next(iter(trapline.checked([{"x": batch[key]}], num_classes=3)))
