"""More rows of the matrix: how a program is started, what it does to its process, where a report goes."""

from __future__ import annotations

from matrix_rows import Row

SPAWN = "import torch.multiprocessing as mp, torch\\ndef f(i): torch.zeros(3)[torch.tensor([5 + i])]\\n"
TORCHRUN = "PY -m torch.distributed.run --standalone"

STARTS = [
    Row("launchers", "torchrun, one process", f"RUN {TORCHRUN} --nproc-per-node 1 fault.py"),
    Row("launchers", "torchrun, two processes", f"RUN {TORCHRUN} --nproc-per-node 2 fault.py | sort"),
    Row("launchers", "torchrun, restarts", f"RUN {TORCHRUN} --nproc-per-node 1 --max-restarts 1 fault.py"),
    Row("launchers", "below torchrun", f"{TORCHRUN} --nproc-per-node 1 --no-python RUN PY fault.py"),
    Row("launchers", "fork", "RUN PY children.py fork"),
    Row("launchers", "spawn", "RUN PY children.py spawn"),
    Row("launchers", "forkserver", "RUN PY children.py forkserver"),
    Row(
        "launchers",
        "torch.multiprocessing.spawn",
        f"printf '{SPAWN}if __name__ == \"__main__\": mp.spawn(f, (), 2)\\n' > s.py; RUN PY s.py",
        "TL105",
    ),
    Row(
        "launchers",
        "a pool",
        "RUN PY -c 'import multiprocessing as m, torch; m.Pool(2).map(torch.zeros(3)"
        ".__getitem__, [torch.tensor([5])])'",
        "TL105",
    ),
    Row(
        "launchers",
        "a pool of threads",
        "RUN PY -c 'from concurrent.futures import ThreadPoolExecutor as P;"
        "import torch; P(2).submit(torch.zeros(3).__getitem__, torch.tensor([5])).result()'",
        "TL105",
    ),
    Row(
        "launchers",
        "a subprocess",
        "RUN PY -c 'import subprocess, sys;sys.exit(subprocess.call([sys.executable, \"fault.py\"]))'",
    ),
    Row(
        "launchers",
        "a subprocess with an empty environment",
        "RUN PY -c 'import subprocess, sys;"
        'sys.exit(subprocess.call([sys.executable, "fault.py"], env={}))\'',
        None,
        "unknown",
    ),
    Row(
        "launchers",
        "os.system",
        "RUN PY -c 'import os, sys; sys.exit(os.system(sys.executable + \" fault.py\") >> 8)'",
    ),
    Row("launchers", "os.execv", 'RUN PY -c \'import os, sys; os.execv(sys.executable, ["p", "fault.py"])\''),
    Row("launchers", "runpy", 'RUN PY -c \'import runpy; runpy.run_path("fault.py", run_name="__main__")\''),
    Row("launchers", "standard input", "RUN PY - < fault.py"),
    Row("launchers", "here document", "RUN PY - <<X\n$(cat fault.py)\nX"),
    Row("launchers", "-c", 'RUN PY -c "$(cat fault.py)"'),
    Row("launchers", "-m", "RUN PY -m fault"),
    Row("launchers", "-i", "echo | RUN PY -i fault.py"),
    Row("launchers", "a folder with __main__", "mkdir d; cp fault.py d/__main__.py; RUN PY d"),
    Row("launchers", "a zip", "cp fault.py __main__.py; PY -m zipfile -c d.zip __main__.py; RUN PY d.zip"),
    Row("launchers", "#!", "(echo '#!PY'; cat fault.py) > s; chmod +x s; RUN ./s"),
    Row(
        "launchers",
        "#!/usr/bin/env -S",
        "(echo '#!/usr/bin/env -S PY -u'; cat fault.py) > s; chmod +x s; RUN ./s",
    ),
    Row("launchers", "bash -c", "RUN bash -c 'PY fault.py'"),
    Row("launchers", "bash -c, not the last", "RUN bash -c 'PY fault.py; exit 3'"),
    Row("launchers", "bash -c || true", "RUN bash -c 'PY fault.py || true'"),
    Row("launchers", "a pipe in the program", "RUN bash -c 'PY fault.py | cat; exit 4'"),
    Row("launchers", "nohup", "nohup RUN PY fault.py"),
    Row("launchers", "setsid", "setsid -w RUN PY fault.py"),
    Row("launchers", "setsid inside", "RUN setsid -w PY fault.py"),
    Row("launchers", "script", "script -qec 'RUN PY fault.py' /dev/null | tr -d '\\r' | grep begun"),
    Row(
        "launchers",
        "expect",
        "expect -c 'spawn -noecho RUN PY fault.py; expect eof; exit [lindex [wait] 3]' | grep -c begun",
    ),
    Row("launchers", "strace", "strace -f -e trace=none -o /dev/null RUN PY fault.py"),
    Row("launchers", "strace inside", "RUN strace -f -e trace=none -o /dev/null PY fault.py"),
    Row("launchers", "stdbuf", "stdbuf -oL RUN PY fault.py"),
    Row("launchers", "ionice, chrt, taskset", "ionice -c3 chrt -b 0 taskset -c 0 RUN PY fault.py"),
    Row("launchers", "flock", "flock lock RUN PY fault.py"),
    Row("launchers", "flock inside", "RUN flock lock PY fault.py"),
    Row("launchers", "parallel", "parallel -j2 'RUN PY {}' ::: fault.py"),
    Row("launchers", "time", "bash -c 'time RUN PY fault.py'"),
    Row("launchers", "Trapline below Trapline", "RUN RUN PY fault.py"),
    Row("launchers", "env -i", "env -i RUN PY fault.py"),
    Row("launchers", "env -i inside", "RUN env -i PY fault.py", None, "unknown"),
    Row("launchers", "another folder", "RUN env -C / PY $PWD/fault.py"),
    Row(
        "launchers",
        "cron: no terminal, no streams",
        "setsid -w RUN PY fault.py < /dev/null > out 2> err; r=$?; cat out; exit $r",
    ),
    Row("launchers", "in the background", "RUN PY fault.py & wait $!"),
    Row(
        "launchers",
        "ten at once",
        "for i in $(seq 10); do RUN PY good.py & done; wait; echo $?",
        None,
        "clean",
    ),
    Row("launchers", "Python -I", "RUN PY -I fault.py", None, "unknown"),
    Row("launchers", "Python -S, handled", "RUN PY -I handled.py", None, "unknown"),
    Row("launchers", "bash -c and Python -I, handled", "RUN bash -c 'PY -I handled.py'", None, "unknown"),
    Row("launchers", "no Python at all", "RUN true", None, "unknown"),
]
STARTS += [
    Row("python", options, f"RUN PY {options} fault.py")
    for options in (
        "-B",
        "-O",
        "-OO",
        "-u",
        "-W error::UserWarning",
        "-X faulthandler",
        "-X utf8=0",
        "-q",
        "-X int_max_str_digits=0",
        "-d",
        "-P",
        "-b",
        "-X no_debug_ranges",
        "-X warn_default_encoding",
    )
]

EXITS = {
    "os._exit(7)": "TL101", "sys.exit(\"words\")": "TL101", "sys.exit(256)": "TL101", "os.abort()": "TL101",
    "raise KeyboardInterrupt": "TL101", "os.kill(os.getpid(), 15)": "TL101", "os.kill(os.getpid(), 9)": "TL101",
    "import ctypes; ctypes.string_at(0)": "TL101", "os.close(1); os.close(2)": "TL101",
    "os.closerange(0, 256)": "TL101", "sys.stderr = None": "TL101", "sys.stdout = sys.stderr = None": "TL101",
    "sys.excepthook = None": "TL101", "del sys.excepthook": "TL101", "sys.excepthook = lambda *a: os._exit(9)": "TL101",
    "os.setsid() if os.getpid() != os.getpgrp() else None": "TL101", "os.chdir(\"/\")": "TL101",
    "os.environ.clear()": "TL101", "sys.modules.clear()": "TL101", "import gc; gc.disable()": "TL101",
    "sys.setrecursionlimit(60)": "TL101", "import threading; threading.Thread(target=lambda: 1 / 0).start()": "TL101",
    "import atexit; atexit.register(lambda: 1 / 0)": "TL101", "os.fork() or os._exit(0); os.wait()": "TL101",
    "import builtins; builtins.open = None": "TL101", "import json; json.dumps = None": "TL101",
    "import time; time.time = lambda: 1 / 0": "TL101", "sys.path.clear()": "TL101",
    "import warnings; warnings.simplefilter(\"error\")": "TL101", "os.umask(0o777)": "TL101",
    "import logging; logging.disable(100)": "TL101", "sys.settrace(lambda *a: None)": "TL101",
    "import signal; signal.pthread_sigmask(0, range(1, 32))": "TL101", "import resource;"
    "resource.setrlimit(7, (6, 6))": "TL101", "import ctypes; ctypes.CDLL(None).prctl(4, 0)": "TL101",
    "os.nice(19)": "TL101", "os.dup2(os.open(\"/dev/full\", 1), 2)": "TL101",
}  # fmt: skip
STARTS += [
    Row("the program", f"faults, then {code}", f"RUN PY then.py '{code}'", want)
    for code, want in EXITS.items()
]
STARTS += [
    Row("the program", f"{code}, then faults", f"RUN PY first.py '{code}'", want)
    for code, want in EXITS.items()
    if not any(word in code for word in ("exit", "abort", "raise", "os.kill", "string_at"))
]

REPORTS = [
    Row("reports", "-o a folder", "mkdir o; TOOLRUN -o o -- PY fault.py", None, "none"),
    Row("reports", "-o a link", "touch f; ln -s f o; TOOLRUN -o o -- PY fault.py; r=$?; cp -L o report.json; exit $r"),
    Row("reports", "-o a link to nothing", "ln -s f o; TOOLRUN -o o -- PY fault.py; r=$?; cp -L o report.json; exit $r"),
    Row("reports", "-o a FIFO", "mkfifo o; cat o > report.json & TOOLRUN -o o -- PY fault.py; r=$?; wait; exit $r"),
    Row("reports", "-o /dev/stderr", "TOOLRUN -o /dev/stderr -- PY fault.py 2> err; r=$?; sed -n '/^{/,$p' err > report.json; exit $r"),
    Row("reports", "-o /dev/fd/9", "TOOLRUN -o /dev/fd/9 -- PY fault.py 9> report.json"),
    Row("reports", "-o without a folder", "TOOLRUN -o no/such/o -- PY fault.py", None, "none"),
    Row("reports", "-o over a hard link", "echo keep > a; ln a report.json; TOOLRUN -o report.json -- PY fault.py; r=$?; cat a; exit $r"),
    Row("reports", "-o read-only for us", "chmod 777 .; echo old > report.json; chmod 444 report.json; setpriv --reuid 65534 --clear-groups TOOLRUN -o report.json -- PY fault.py"),
    Row("reports", "-o immutable", "touch o; chattr +i o || exit 125; trap 'chattr -i o' EXIT; TOOLRUN -o o -- PY fault.py", None, "none"),
    Row("reports", "-o the program's own source", "TOOLRUN -o report.json -- PY fault.py; r=$?; exit $r"),
    Row("reports", "-o twice the same, at once", "(TOOLRUN -o report.json -- PY good.py) & TOOLRUN -o report.json -- PY good.py; r=$?; wait; exit $r", None, "clean"),
    Row("reports", "--report a file", "touch rep; REPORT=rep RUN PY fault.py", None, "none", 2),
    Row("reports", "--report a link", "mkdir r; ln -s r rep; REPORT=rep RUN PY fault.py"),
    Row("reports", "--report a folder of another user", "mkdir r; chown 65534 r; REPORT=r RUN PY fault.py"),
    Row("reports", "--report used twice", "REPORT=r RUN PY fault.py > /dev/null; REPORT=r RUN PY fault.py"),
    Row("reports", "--report holds garbage", "mkdir r; for i in $(seq 50); do head -c 999 /dev/urandom > r/finding-x-$i-0.json; done; REPORT=r RUN PY fault.py"),
]  # fmt: skip

SIGNALS = [
    Row(
        "signals",
        f"{name} is {what} from outside",
        f"PY -c 'import os, signal, sys; {how}; os.execvp(sys.argv[1], sys.argv[1:])' RUN PY fault.py",
    )
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGCHLD", "SIGPIPE", "SIGUSR1")
    for what, how in (
        ("ignored", f"signal.signal(signal.{name}, signal.SIG_IGN)"),
        ("blocked", f"signal.pthread_sigmask(0, [signal.{name}])"),
    )
] + [
    Row(
        "signals",
        f"{name} is {what} from outside, and comes",
        f"PY -c 'import os, signal, sys; {how}; os.execvp(sys.argv[1], sys.argv[1:])' "
        f"timeout -s {name[3:]} -k 3 0.7 RUN sleep 2",
        None,
        "clean",
    )
    for name in ("SIGTERM", "SIGINT", "SIGHUP")
    for what, how in (
        ("ignored", f"signal.signal(signal.{name}, signal.SIG_IGN)"),
        ("blocked", f"signal.pthread_sigmask(0, [signal.{name}])"),
    )
]
