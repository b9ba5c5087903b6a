"""The fault matrix: what can happen to a supervisor and to its program, and what must come of it.

Each row is a function of a folder and of a random generator that varies times and flags; it asserts the exit
code, what was decided, and what is left behind. test_matrix.py runs each once, in `make test-long` ten times.
"""

import os
import resource
import signal
import socket
import subprocess
import sys
import time

from supervised import ASSERTION, Supervised, until

MAX_RSS = 32 * 1024  # KiB
QUICK = ("--delay", "0.05", "--grace", "1")


def sh(script):
    return ["/bin/sh", "-c", script]


def python(script):
    return [sys.executable, "-S", "-c", script]


def ended(run, code, decisions=None, codes=None, seconds=60):
    assert run.wait(seconds) == code, run.err[-3000:]
    if decisions is not None:
        assert run.decisions == decisions, run.err[-3000:]
    if codes is not None:
        assert run.codes == codes
    assert run.peak < MAX_RSS
    run.gone()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def child_of(run, seconds=20):
    """The pid that the program has written as its first line."""
    return int(until(lambda: run.out.split("\n")[0] if "\n" in run.out else None, seconds))


def kill_child(folder, rng):
    run = Supervised(folder, *QUICK, "--restarts", "1", program=sh("echo $$; exec sleep 60"))
    pid = child_of(run)
    time.sleep(rng.random() * 0.2)
    os.kill(pid, signal.SIGKILL)
    until(lambda: run.out.count("\n") == 2)
    os.kill(int(run.out.split("\n")[1]), signal.SIGKILL)
    ended(run, 70, ["retry", "stop"])
    assert "SIGKILL ended it" in run.err


def kill_supervisor(folder, rng):
    run = Supervised(
        folder, *QUICK, program=sh("echo $$; (setsid sleep 60 &); trap '' TERM; while :; do sleep 0.1; done")
    )
    child_of(run)
    time.sleep(rng.random() * 0.2)
    run.send(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    run.gone()


def kill_supervisor_with_standby(folder, rng):
    run = Supervised(folder, *QUICK, "--standby", program=sh("echo $$; exec sleep 60"))
    until(lambda: run.out.count("\n") == 2)
    time.sleep(rng.random() * 0.2)
    run.send(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    run.gone()


def kill_one_rank(folder, rng):
    """A launcher with two ranks, as torchrun: it ends its other rank and fails when one dies."""
    script = (
        "import os,subprocess,sys,time\n"
        "ranks=[subprocess.Popen(['sleep','60']) for _ in range(2)]\n"
        "print(ranks[0].pid, flush=True)\n"
        "while all(r.poll() is None for r in ranks): time.sleep(0.01)\n"
        "[r.kill() for r in ranks]\n"
        "sys.exit(1)\n"
    )
    run = Supervised(folder, *QUICK, "--restarts", "0", program=python(script))
    os.kill(child_of(run), signal.SIGKILL)
    ended(run, 70, ["stop"])


def segfault(folder, rng):
    tries = rng.randint(0, 3)
    run = Supervised(folder, *QUICK, "--restarts", str(tries), program=sh("kill -SEGV $$"))
    ended(run, 70, ["retry"] * tries + ["stop"])
    assert "SIGSEGV ended it" in run.err


def hang(folder, rng):
    run = Supervised(folder, *QUICK, "--stall", "1", "--restarts", "1", program=sh("echo $$; exec sleep 60"))
    ended(run, 70, ["retry", "stop"])
    assert "no output for 1 s" in run.err


def hang_that_ignores(folder, rng):
    run = Supervised(
        folder,
        *QUICK,
        "--stall",
        "1",
        "--restarts",
        "0",
        program=sh("trap '' TERM INT HUP; while :; do sleep 0.05; done"),
    )
    ended(run, 70, ["stop"])


def flood(folder, rng):
    """1 GB; the fault stands in the middle of it."""
    script = (
        "import os,sys\n"
        "line=b'2026-01-01 INFO step 12345 loss 0.3456 lr 1e-4 grad 0.22 ok 1\\n'*1024\n"
        f"for i in range({(1 << 30) // (64 * 1024)}):\n"
        "  os.write(1,line)\n"
        f"  if i==8000: os.write(2, {ASSERTION.encode()!r} + b'\\n')\n"
        "sys.exit(1)\n"
    )
    with open(os.devnull, "wb") as nothing:
        run = Supervised(folder, *QUICK, program=python(script), stdout=nothing)
    ended(run, 65, ["stop"], ["TL103"])


def full_disk(folder, rng):
    """What cannot be written is dropped and said, and the fault is found all the same."""
    with open("/dev/full", "wb") as full:
        run = Supervised(
            folder,
            *QUICK,
            stdout=full,
            program=sh(f"echo '{ASSERTION}'; echo 'CUDA error: device-side assert triggered'; exit 1"),
        )
    ended(run, 65, ["stop"], ["TL103"])
    assert "is dropped" in run.err


def no_reader(folder, rng):
    """Who reads the output goes away: the program is told by SIGPIPE, as without Trapline."""
    run = Supervised(
        folder, *QUICK, "--restarts", "0", stdout=subprocess.PIPE, program=sh("while :; do echo hello; done")
    )
    run.process.stdout.read(100)
    run.process.stdout.close()
    ended(run, 70, ["stop"])
    assert "SIGPIPE ended it" in run.err


def unreadable_policy(folder, rng):
    bad = folder / "policy.toml"
    kind = rng.randrange(5)
    if kind == 0:
        bad = folder / "missing.toml"
    elif kind == 1:
        bad.mkdir()
    elif kind == 2:
        bad.write_bytes(rng.randbytes(1000))
    elif kind == 3:
        bad.write_text("restarts = 'many'\n")
    else:
        bad.write_text("[decide]\nTL999 = 'stop'\n")
    run = Supervised(folder, "--policy", str(bad), program=sh("echo started"))
    ended(run, 2)
    assert run.out == "" and run.err.startswith("trapline: ") and str(bad) in run.err
    assert run.err.count("\n") == 1


def port_taken(folder, rng):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        flag = rng.choice(["--listen", "--status"])
        run = Supervised(folder, flag, str(taken.getsockname()[1]), program=sh("echo started"))
        ended(run, 2)
    assert run.out == "" and "cannot listen at 127.0.0.1:" in run.err and run.err.count("\n") == 1


def clock_jump(folder, rng):
    """The wall clock goes back by a day and forward again at every look: nothing waits for it."""
    source = folder / "jump.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <time.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
        "int clock_gettime(clockid_t id, struct timespec* t) {\n"
        "  static int n; int r = syscall(SYS_clock_gettime, id, t);\n"
        "  if (id == CLOCK_REALTIME) t->tv_sec += (n++ % 2 ? 86400 : -86400); return r; }\n"
    )
    library = folder / "jump.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    run = Supervised(
        folder, *QUICK, "--restarts", "2", program=sh("exit 3"), env={"LD_PRELOAD": str(library)}
    )
    ended(run, 70, ["retry", "retry", "stop"], seconds=20)


def ignores_sigterm(folder, rng):
    run = Supervised(
        folder, "--grace", "0.5", program=sh("trap '' TERM; echo $$; while :; do sleep 0.05; done")
    )
    child_of(run)
    began = time.monotonic()
    run.send(signal.SIGTERM)
    ended(run, 128 + signal.SIGKILL)
    assert time.monotonic() - began >= 0.5


def asked_with_standby(folder, rng):
    """A standby that waits as Python processes do ends with the program."""
    script = (
        "import os,time\n"
        "n=int(os.environ.pop('TRAPLINE_STANDBY_FD', -1))\n"
        "print(os.getpid(), flush=True)\n"
        "if n>=0:\n"
        "  os.write(n, b'ready\\n')\n"
        "  if not os.read(n, 1): os._exit(0)\n"
        "time.sleep(60)\n"
    )
    run = Supervised(folder, *QUICK, "--standby", program=python(script))
    until(lambda: run.out.count("\n") == 2)
    time.sleep(rng.random() * 0.2)
    run.send(signal.SIGTERM)
    ended(run, 128 + signal.SIGTERM, [])


def asked_twice(folder, rng):
    run = Supervised(
        folder, "--grace", "60", program=sh("trap '' TERM INT; echo $$; while :; do sleep 0.05; done")
    )
    child_of(run)
    number = rng.choice([signal.SIGTERM, signal.SIGINT])
    run.send(number)
    time.sleep(0.2)
    run.send(number)
    ended(run, 128 + signal.SIGKILL, seconds=20)


def fork_bomb(folder, rng):
    """150 processes, each in a session of its own, that start another when they are told to end."""
    script = (
        "import os,signal,time\n"
        "def again(*_):\n"
        "  if os.fork()==0: os.setsid()\n"
        "signal.signal(signal.SIGTERM, again)\n"
        "for _ in range(150):\n"
        "  if os.fork()==0:\n"
        "    os.setsid()\n"
        "    end=time.time()+60\n"
        "    while time.time()<end: time.sleep(1)\n"
        "    os._exit(0)\n"
        "print(os.getpid(), flush=True)\n"
        "os._exit(3)\n"
    )
    run = Supervised(folder, "--delay", "0.05", "--grace", "0.3", "--restarts", "0", program=python(script))
    ended(run, 70, ["stop"])


def left_behind(folder, rng):
    """The program ends well and leaves a daemon: that goes, too."""
    run = Supervised(folder, *QUICK, program=sh("(setsid sh -c 'sleep 60 &' &); sleep 0.2; exit 0"))
    ended(run, 0, [])


def closed_descriptors(folder, rng):
    run = Supervised(
        folder,
        *QUICK,
        "--restarts",
        "0",
        wrap=["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"],
        program=sh("exit 4"),
    )
    ended(run, 70, ["stop"])


def few_descriptors(folder, rng):
    """Too few to work with is an error line, or it works; never a hang or a crash."""

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (rng.randint(6, 24), 64))

    run = Supervised(folder, *QUICK, "--restarts", "0", program=sh("exit 4"), preexec_fn=limit)
    assert run.wait() in (2, 70)
    run.gone()


def poisoned_job(folder, rng):
    """A job that has lost its context and lives on is ended after a while; the log tells the cause."""
    program = sh(
        f"echo '{ASSERTION}' >&2; echo 'CUDA error: device-side assert triggered' >&2; exec sleep 60"
    )
    run = Supervised(folder, *QUICK, program=program)
    ended(run, 65, ["stop"], ["TL103"])
    assert "the CUDA context is lost" in run.err


def poisoned_service(folder, rng):
    program = sh(
        f"echo '{ASSERTION}' >&2; echo 'CUDA error: device-side assert triggered' >&2; exec sleep 60"
    )
    flags = ["--standby"] if rng.random() < 0.5 else []
    run = Supervised(folder, *QUICK, "--restarts", "2", "--listen", str(free_port()), *flags, program=program)
    ended(run, 70, ["retry", "retry", "stop"], ["TL103"])


def one_worker_is_replaced(folder, rng):
    """With `--replace process` the worker that has lost its context ends, and its parent starts another."""
    worker = (
        "import os,socket,sys,time\n"
        "s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n"
        "s.connect(os.environ['TRAPLINE_CONTEXT_SOCKET'])\n"
        "s.send(b'hello')\n"
        "time.sleep(0.2)\n"
        "first=not os.path.exists('first')\n"
        "if first:\n"
        "  open('first','w').close()\n"
        f"  print({ASSERTION!r}, flush=True)\n"
        "while s.recv(100): s.send(b'dead' if first else b'alive')\n"
    )
    script = (
        "import subprocess,sys\n"
        f"start=lambda: subprocess.Popen([sys.executable,'-S','-c',{worker!r}])\n"
        "other=subprocess.Popen(['sleep','60'])\n"
        "print(start().wait(), flush=True)\n"
        "second=start()\n"
        "try: second.wait(1)\n"
        "except subprocess.TimeoutExpired: print('lives', other.poll(), flush=True)\n"
        "other.kill(); second.kill()\n"
    )
    run = Supervised(
        folder, *QUICK, "--listen", str(free_port()), "--replace", "process", program=python(script)
    )
    assert run.wait() == 0, run.err
    run.gone()
    assert run.out.splitlines()[1:] == ["-9", "lives None"], run.out
    assert "1 of the program's processes was ended; the program goes on" in run.err


def signals_pass(folder, rng):
    number = rng.choice([signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
    program = sh(f"trap 'echo got; exit 0' {number.value}; echo $$; while :; do sleep 0.02; done")
    run = Supervised(folder, *QUICK, program=program)
    child_of(run)
    run.send(number)
    ended(run, 0, [])
    assert run.out.count("got") == 1


def vanished_folder(folder, rng):
    """The folder of the findings is removed while the program runs."""
    reports = folder / "reports"
    run = Supervised(
        folder, *QUICK, "--restarts", "1", "--report", str(reports), program=sh("rm -rf reports; exit 3")
    )
    ended(run, 70, ["retry", "stop"])


def fatal_text_without_fault(folder, rng):
    """A guarded process that answers that its context is alive is left alone, whatever it prints."""
    script = (
        "import os,socket,threading,time\n"
        "s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n"
        "s.connect(os.environ['TRAPLINE_CONTEXT_SOCKET'])\n"
        "s.send(b'hello %d' % os.getpid())\n"
        "def talk():\n"
        "  while s.recv(100): s.send(b'alive')\n"
        "threading.Thread(target=talk,daemon=True).start()\n"
        f"print({ASSERTION!r}); print('CUDA error: device-side assert triggered', flush=True)\n"
        "time.sleep(1)\n"
    )
    run = Supervised(folder, *QUICK, "--listen", str(free_port()), program=python(script))
    ended(run, 0, [])
    assert "the CUDA contexts are alive" in run.err


def fault_after_fatal_text(folder, rng):
    """What was only printed once does not hide the same fault when it comes."""
    script = (
        "import os,socket,threading,time\n"
        "if os.path.exists('again'): os._exit(0)\n"
        "open('again','w').close()\n"
        "s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n"
        "s.connect(os.environ['TRAPLINE_CONTEXT_SOCKET'])\n"
        "s.send(b'hello')\n"
        "answers=iter([b'alive',b'dead gone'])\n"
        "def talk():\n"
        "  while s.recv(100): s.send(next(answers))\n"
        "threading.Thread(target=talk,daemon=True).start()\n"
        "for _ in range(2):\n"
        "  time.sleep(0.3)\n"
        f"  print({ASSERTION!r}, flush=True)\n"
        "time.sleep(60)\n"
    )
    run = Supervised(folder, *QUICK, "--listen", str(free_port()), program=python(script))
    ended(run, 0)
    assert run.err.index("the CUDA contexts are alive") < run.err.index("the CUDA context is lost")


ROWS = [
    kill_child,
    kill_supervisor,
    kill_supervisor_with_standby,
    kill_one_rank,
    segfault,
    hang,
    hang_that_ignores,
    flood,
    full_disk,
    no_reader,
    unreadable_policy,
    port_taken,
    clock_jump,
    ignores_sigterm,
    asked_with_standby,
    asked_twice,
    fork_bomb,
    left_behind,
    closed_descriptors,
    few_descriptors,
    poisoned_job,
    poisoned_service,
    one_worker_is_replaced,
    signals_pass,
    vanished_folder,
    fatal_text_without_fault,
    fault_after_fatal_text,
]
