"""Two workers of Ray Train: ``ray_train.py [--broken] [--guard]``. --guard: by the runtime environment."""

import os
import sys

import ray
import ray.train
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from torch import nn


def loop(config: dict) -> None:
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    labels = torch.arange(64) % 4
    if config["broken"]:
        labels[41] = 7
    points = TensorDataset(torch.randn(64, 5), labels)
    loader = prepare_data_loader(DataLoader(points, 4, shuffle=True))
    model = prepare_model(nn.Linear(5, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        ray.train.report({"loss": loss.item()})
    with open(
        os.path.join(config["folder"], f"loss-{ray.train.get_context().get_world_rank()}"), "w"
    ) as file:
        file.write(str(loss.item()))


if __name__ == "__main__":
    settings = {}
    if "--guard" in sys.argv:
        from trapline.integrations.ray import runtime_env

        settings["runtime_env"] = runtime_env()
    ray.init(num_cpus=3, include_dashboard=False, **settings)
    trainer = TorchTrainer(
        loop,
        train_loop_config={"broken": "--broken" in sys.argv, "folder": os.getcwd()},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(name="trial7", storage_path=os.path.abspath("ray")),
    )
    try:
        trainer.fit()
        for rank in range(2):
            with open(f"loss-{rank}") as file:
                print("result", rank, file.read())
    except ray.train.WorkerGroupError as error:
        for rank, failure in error.worker_failures.items():
            print("failure", rank, type(failure).__name__, failure.finding["code"], failure.summary)
            print("progress", failure.finding.get("progress"))
        raise
