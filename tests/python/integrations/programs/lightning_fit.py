"""A classifier under Lightning's Trainer: ``lightning_fit.py PACKAGE MODE [--broken] [--callback]``."""

import importlib
import sys
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

package, mode, broken = sys.argv[1], sys.argv[2], "--broken" in sys.argv
L = importlib.import_module(package)
if "--install" in sys.argv:
    import trapline

    trapline.install()


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 4)

    def _loss(self, batch):
        return nn.functional.cross_entropy(self.head(batch[0]), batch[1])

    def training_step(self, batch, number):
        return self._loss(batch)

    def validation_step(self, batch, number, dataloader_idx=0):
        self._loss(batch)

    def test_step(self, batch, number):
        self._loss(batch)

    def predict_step(self, batch, number):
        return self.head(batch[0][:, :5]) if broken else self._loss(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def points(count: int, seed: int, modes: tuple) -> TensorDataset:
    y = torch.arange(count) % 4
    if broken and mode in modes:
        y[37] = 9
    return TensorDataset(torch.randn(count, 6, generator=torch.Generator().manual_seed(seed)), y)


train_set = points(80, 1, ("train", "accumulate", "ranks"))
val_set = points(40, 2, ("validate", "sanity", "test", "second"))
callbacks = []
if "--callback" in sys.argv:
    from trapline.integrations.lightning import TraplineCallback

    callbacks = [TraplineCallback()]
L.seed_everything(0)
train, val = DataLoader(train_set, 8, shuffle=True), DataLoader(val_set, 4)
trainer = L.Trainer(
    accelerator="cpu",
    devices=2 if mode == "ranks" else 1,
    strategy="ddp" if mode == "ranks" else "auto",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    max_epochs=2,
    num_sanity_val_steps=-1 if mode == "sanity" else 0,
    accumulate_grad_batches=4 if mode == "accumulate" else 1,
    callbacks=callbacks,
)
model = Classifier()
if mode == "test":
    trainer.test(model, val, verbose=False)
elif mode == "predict":
    trainer.predict(model, val)
else:
    trainer.fit(model, train, [train, val] if mode == "second" else val)
print("result", trainer.global_step, float(model.head.weight.sum()))
