"""Ray Train: the guard in its workers, and the finding back at the driver, whole."""

from __future__ import annotations

import pytest
from conftest import need
from trapline.integrations import ray as integration

SENTENCE = "cross_entropy: target[3] is 7, but `model` has 4 outputs: valid labels are [0, 4)"


@pytest.fixture
def python():
    return need("ray", "pyarrow", "pandas", "pydantic")


def test_workers_of_a_guarded_program_inherit_the_guard(trainers, python):
    done = trainers.run(python, "ray_train.py", "--broken")
    found = done.finding
    assert (found["code"], found["sample"]["dataset_index"]) == ("TL101", 41)
    assert found["process"]["world_size"] == 2
    assert found["progress"] == {"trainer": "Ray Train trial7"}
    assert f"failure {found['process']['rank']} DeviceAssertError TL101 {SENTENCE}" in done.out


def test_by_the_runtime_environment(trainers, python):
    done = trainers.plain(python, "ray_train.py", "--broken", "--guard")
    assert f"DeviceAssertError TL101 {SENTENCE}" in done.out
    assert "progress {'trainer': 'Ray Train trial7'}" in done.out


def test_the_healthy_twin_has_no_finding_and_the_same_numbers(trainers, python):
    plain = trainers.plain(python, "ray_train.py").result()
    guarded = trainers.run(python, "ray_train.py")
    assert (guarded.returncode, guarded.findings, guarded.result()) == (0, [], plain)


def test_a_task_and_its_error(trainers, python):
    program = """\
import ray, torch, trapline
from trapline.integrations.ray import runtime_env

@ray.remote(max_retries=0)
def work():
    return torch.zeros(3)[torch.tensor([3])]

ray.init(num_cpus=1, include_dashboard=False, runtime_env=runtime_env({"env_vars": {"MINE": "1"}}))
try:
    ray.get(work.remote())
except trapline.DeviceAssertError as error:
    print(type(error).__name__, error.finding["code"], error.summary)
"""
    (trainers.folder / "task.py").write_text(program)
    out = trainers.plain(python, "task.py").out
    assert "RayTaskError(DeviceAssertError) TL105 x[index]: index[0] is 3, but" in out


def test_a_hook_of_the_users_is_not_lost():
    with pytest.raises(ValueError, match=r"call trapline\.integrations\.ray\.guard_worker\(\) in it"):
        integration.runtime_env({"worker_process_setup_hook": "mine"})
    assert integration.runtime_env({"pip": ["x"]}) == {
        "pip": ["x"],
        "worker_process_setup_hook": "trapline.integrations.ray.guard_worker",
    }
