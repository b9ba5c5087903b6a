"""A tiny BERT under Hugging Face's Trainer: ``hf_trainer.py MODE [--broken]``."""

import os
import sys
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from transformers import (  # noqa: E402
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

mode, broken = sys.argv[1], "--broken" in sys.argv
generator = torch.Generator().manual_seed(1)
torch.manual_seed(0)


def texts(count: int) -> list[dict]:
    ids = torch.randint(1, 90, (count, 12), generator=generator).tolist()
    return [{"input_ids": row, "labels": i % 3} for i, row in enumerate(ids)]


train, validation = texts(200), texts(40)
if broken and mode in ("train", "accumulate", "resume", "workers", "ranks", "late"):
    train[137]["labels"] = 5
if broken and mode == "evaluate":
    validation[9]["labels"] = -1
if broken and mode == "predict":
    validation[5]["input_ids"][2] = 333
if mode == "lengths":
    for i, text in enumerate(train):
        text["input_ids"] = text["input_ids"][: 5 + i % 7]
    if broken:
        train[137]["input_ids"] = [7] * 40


def padded(features: list[dict]) -> dict:
    longest = max(len(one["input_ids"]) for one in features)
    rows = [one["input_ids"] + [0] * (longest - len(one["input_ids"])) for one in features]
    return {"input_ids": torch.tensor(rows), "labels": torch.tensor([one["labels"] for one in features])}


settings: dict = {"num_train_epochs": 1, "save_strategy": "no"}
if mode == "accumulate":
    settings["gradient_accumulation_steps"] = 16
if mode == "workers":
    settings["dataloader_num_workers"] = 2
if mode == "lengths":
    known = TrainingArguments.__dataclass_fields__
    by_length = {"group_by_length": True}
    settings.update(
        by_length if "group_by_length" in known else {"train_sampling_strategy": "group_by_length"}
    )
if mode == "evaluate":
    settings.update(eval_strategy="steps", eval_steps=5)
if mode == "resume":
    settings.update(save_strategy="steps", save_steps=3)
if "--install" in sys.argv:
    import trapline

    trapline.install()
callbacks = []
if "--callback" in sys.argv:
    from trapline.integrations.transformers import TraplineCallback

    callbacks = [TraplineCallback()]
config = BertConfig(
    vocab_size=100,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=32,
    num_labels=3,
    name_or_path="bert-tiny",
)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=TrainingArguments(
        "out",
        per_device_train_batch_size=8,
        report_to=[],
        disable_tqdm=True,
        use_cpu="--cuda" not in sys.argv,
        **settings,
    ),
    train_dataset=Dataset.from_list(train),
    eval_dataset=Dataset.from_list(validation),
    data_collator=padded if mode == "lengths" else default_data_collator,
    callbacks=callbacks,
)
if mode == "predict":
    print("result", trainer.predict(trainer.eval_dataset).metrics["test_loss"])
else:
    checkpoint = "out/checkpoint-3" if mode == "resume" and os.path.isdir("out/checkpoint-3") else None
    print("result", trainer.train(resume_from_checkpoint=checkpoint).training_loss)
