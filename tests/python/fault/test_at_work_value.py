"""A batch whose numbers the program has picked from: it holds the bad one."""

import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from trapline._fault.data import at_work  # noqa: E402

pytestmark = pytest.mark.usefixtures("installed")


def boxes():
    targets = torch.zeros(6, 5)
    targets[:, 0] = torch.arange(6.0) * 5
    return DataLoader(TensorDataset(torch.rand(6, 3), targets), batch_size=3)


def loss(images, targets, value):
    picked = targets[0].reshape(-1)[:1].long().repeat(7)  # of another size than the batch
    return at_work.sample_facts([picked], "", value)


def test_the_number_stands_in_the_batch():
    for images, targets in boxes():
        sample = loss(images, targets, int(targets[2, 0]))
        assert sample is not None and sample["by"] == "hand"
        assert sample["batch"] == int(targets[0, 0]) // 15


def test_another_number_or_a_usual_one_does_not():
    for images, targets in boxes():
        assert loss(images, targets, 7) is None
        assert loss(images, targets, 0) is None
        assert loss(images, targets, None) is None
