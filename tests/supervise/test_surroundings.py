"""What systemd, Kubernetes and torchrun are told, each in its own way."""

import json
import shutil
import signal
import socket
import subprocess
import time

import pytest
from faults import sh
from supervised import ASSERTION, ROOT, Supervised, until

FATAL = f"echo '{ASSERTION}' >&2; echo 'CUDA error: device-side assert triggered' >&2; exit 1"


class NotifySocket:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(0.05)
        self.lines = []

    def read(self):
        try:
            while True:
                self.lines.append(self.socket.recv(4096).decode())
        except socket.timeout:
            return self.lines


def test_systemd_is_told_state_and_liveness(tmp_path):
    notify = NotifySocket(tmp_path / "n")
    env = {"NOTIFY_SOCKET": str(tmp_path / "n"), "WATCHDOG_USEC": "400000"}
    run = Supervised(
        tmp_path, program=sh("env | grep -c -e NOTIFY_SOCKET -e WATCHDOG; exec sleep 60"), env=env
    )
    until(lambda: notify.read().count("WATCHDOG=1") >= 3)
    assert notify.lines.count("READY=1") == 1
    assert "STATUS=ready, start 1" in notify.lines
    assert run.out == "0\n", "the program does not inherit what was meant for Trapline"
    run.send(signal.SIGTERM)
    run.wait()
    notify.read()
    assert "STOPPING=1" in notify.lines


def test_systemctl_status_tells_the_last_fault(tmp_path):
    notify = NotifySocket(tmp_path / "n")
    script = sh(f"[ -e again ] && exit 0; touch again; {FATAL}")
    flags = ["--listen", f"unix:{tmp_path}/s", "--delay", "0.05"]
    run = Supervised(tmp_path, *flags, program=script, env={"NOTIFY_SOCKET": str(tmp_path / "n")})
    assert run.wait() == 0
    assert "STATUS=ready, start 2; last fault TL103: retry" in notify.read()


def test_an_abstract_socket(tmp_path):
    name = f"trapline-test-{tmp_path.name}-{time.time_ns()}"
    notify = NotifySocket("\0" + name)
    run = Supervised(tmp_path, program=sh("sleep 0.2"), env={"NOTIFY_SOCKET": "@" + name})
    assert run.wait() == 0
    assert "READY=1" in notify.read()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_the_unit_file_is_one(tmp_path):
    text = (ROOT / "examples" / "deploy" / "trapline-server.service").read_text()
    # The paths of the example are not on this machine.
    text = (
        text.replace("/usr/local/bin/trapline", "/bin/true")
        .replace("/srv/app", "/tmp")
        .replace("User=app\n", "")
    )
    unit = tmp_path / "trapline-server.service"
    unit.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_kubernetes_is_told_the_reason(tmp_path):
    log = tmp_path / "termination-log"
    run = Supervised(tmp_path, program=sh(FATAL), env={"TRAPLINE_TERMINATION_LOG": str(log)})
    assert run.wait() == 65
    first, second = log.read_text().splitlines()
    assert first.startswith("TL103: an id is outside the table")
    assert second.startswith("stop: TL103 comes back with the same id")
    assert len(log.read_bytes()) <= 4096


def test_the_manifest_is_one(tmp_path):
    yaml = pytest.importorskip("yaml")
    documents = list(yaml.safe_load_all((ROOT / "examples" / "deploy" / "kubernetes.yaml").read_text()))
    (deployment,) = [one for one in documents if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["terminationMessagePolicy"] == "File"
    assert container["command"][:2] == ["trapline", "supervise"]


def test_torchrun_is_told_in_its_own_form(tmp_path):
    file = tmp_path / "error.json"
    run = Supervised(tmp_path, program=sh(FATAL), env={"TORCHELASTIC_ERROR_FILE": str(file)})
    assert run.wait() == 65
    message = json.loads(file.read_text())["message"]
    assert message["message"].startswith("TL103: an id is outside the table")
    first, second = message["extraInfo"]["py_callstack"].splitlines()
    assert first == message["message"]
    assert second.startswith("trapline supervise: stop: TL103 comes back")
    assert abs(int(message["extraInfo"]["timestamp"]) - time.time()) < 60


def test_torchrun_reads_it(tmp_path):
    """Its own code makes the summary of the failure from the file."""
    errors = pytest.importorskip("torch.distributed.elastic.multiprocessing.errors")
    file = tmp_path / "error.json"
    run = Supervised(tmp_path, program=sh(FATAL), env={"TORCHELASTIC_ERROR_FILE": str(file)})
    run.wait()
    failure = errors.ProcessFailure(local_rank=0, pid=1, exitcode=65, error_file=str(file))
    assert failure.timestamp > 0
    printed = errors.ChildFailedError("train.py", {0: failure}).format_msg()
    assert "TL103: an id is outside the table" in printed
    assert "trapline supervise: stop: TL103 comes back" in printed


def test_an_error_file_of_the_worker_stays(tmp_path):
    file = tmp_path / "error.json"
    file.write_text("the worker's own")
    run = Supervised(tmp_path, program=sh(FATAL), env={"TORCHELASTIC_ERROR_FILE": str(file)})
    run.wait()
    assert file.read_text() == "the worker's own"


@pytest.mark.parametrize("script", ["slurm.sh"])
def test_the_batch_script_is_a_shell_script(script):
    subprocess.run(["bash", "-n", ROOT / "examples" / "deploy" / script], check=True)


def test_slurm_requeues_what_may_run_later(tmp_path):
    """The batch script asks for another run after exit code 75, and for none after the others."""
    bin = tmp_path / "bin"
    bin.mkdir()
    for name, text in {
        "scontrol": 'echo "$@" >> scontrol.log',
        "srun": 'exit "$(cat code)"',
    }.items():
        (bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin / name).chmod(0o755)
    script = ROOT / "examples" / "deploy" / "slurm.sh"
    for code, asked in ((0, 0), (65, 0), (70, 0), (75, 1), (1, 0)):
        (tmp_path / "scontrol.log").unlink(missing_ok=True)
        (tmp_path / "code").write_text(str(code))
        done = subprocess.run(
            ["bash", script],
            cwd=tmp_path,
            env={"PATH": f"{bin}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "0"},
            capture_output=True,
            check=False,
        )
        log = (tmp_path / "scontrol.log").read_text() if (tmp_path / "scontrol.log").exists() else ""
        assert log.count("requeue 7") == asked
        assert done.returncode == code
