"""The rows of the matrix of faults: what a machine, a launcher or a user does to a guarded program.

A row is a line of bash. `RUN` stands for `trapline run ...` or, for the twin, for nothing; `PY` for Python,
`TOOL` for Trapline. It runs in a folder of its own, that holds the programs below and the empty folder `tmp`.
"""

from __future__ import annotations

from typing import NamedTuple, Optional


class Row(NamedTuple):
    area: str
    name: str
    line: str
    code: Optional[str] = "TL101"  # of the finding; None: there is none
    verdict: str = "fault"
    exit: Optional[int] = None  # where it is another one than the twin's, by design


PROGRAMS = {
    "fault.py": """
import torch
from torch import nn
print("begun", flush=True)
nn.functional.cross_entropy(torch.randn(4, 3), torch.tensor([0, 1, 7, 2]))
""",
    "handled.py": """
import torch
from torch import nn
try:
    nn.functional.cross_entropy(torch.randn(4, 3), torch.tensor([0, 1, 7, 2]))
except IndexError:
    print("handled", flush=True)
print("end", flush=True)
""",
    "good.py": """
import torch
from torch import nn
print(nn.functional.cross_entropy(torch.zeros(4, 3), torch.tensor([0, 1, 2, 2])).item(), flush=True)
""",
    "children.py": """
import multiprocessing, sys
import torch
def child(label):
    torch.nn.functional.cross_entropy(torch.zeros(1, 3), torch.tensor([label]))
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    ended = []
    for label in (0, 7):
        one = context.Process(target=child, args=(label,))
        one.start()
        one.join()
        ended.append(one.exitcode)
    print(ended, flush=True)
    sys.exit(ended[1])
""",
    "then.py": """
import os, sys, torch
try:
    torch.nn.functional.cross_entropy(torch.zeros(1, 3), torch.tensor([7]))
finally:
    exec(sys.argv[1])
""",
    "first.py": """
import os, sys
exec(sys.argv[1])
import torch
print("begun", flush=True)
torch.nn.functional.cross_entropy(torch.zeros(1, 3), torch.tensor([7]))
""",
}


def _on_a_mount(kind: str, options: str, use: str) -> str:
    mount = f"mount -t {kind} -o {options} none there"
    line = {
        "TMPDIR": "TMPDIR=$PWD/there RUN PY fault.py",
        "the current folder": "cp *.py there; cd there; RUN PY fault.py",
        "HOME": "HOME=$PWD/there XDG_CACHE_HOME=$PWD/there/c RUN PY fault.py",
        "the report folder": "REPORT=there RUN PY fault.py",
    }[use]
    return f"mkdir there lower; unshare -m bash -c '{mount}; {line}'"


USES = ("TMPDIR", "the current folder", "HOME", "the report folder")
MOUNTS = {
    "tmpfs": ("tmpfs", "size=16m"),
    "noexec": ("tmpfs", "size=16m,noexec"),
    "nosuid,nodev": ("tmpfs", "size=16m,nosuid,nodev"),
    "ramfs": ("ramfs", "mode=700"),
}
FILES = [
    Row("file systems", f"{use} on {name}", _on_a_mount(kind, options, use))
    for name, (kind, options) in MOUNTS.items()
    for use in USES
]
OVERLAY = "mkdir l m; unshare -m bash -c 'mount -t tmpfs none m; mkdir m/u m/w m/o; "
OVERLAY += "mount -t overlay -o lowerdir=l,upperdir=m/u,workdir=m/w none m/o; "
FUSE = "mkdir l f; unshare -m bash -c 'bindfs l f || exit 125; "
FULL = "mkdir there; unshare -m bash -c 'mount -t tmpfs -o size=64k none there; "
FULL += "head -c 1000000 /dev/zero > there/big 2> /dev/null; "
INODES = "mkdir there; unshare -m bash -c 'mount -t tmpfs -o nr_inodes=2 none there; touch there/a; "
FILES += [
    Row("file systems", "TMPDIR on overlay", OVERLAY + "TMPDIR=$PWD/m/o RUN PY fault.py'"),
    Row("file systems", "the current folder on overlay", OVERLAY + "cp *.py m/o; cd m/o; RUN PY fault.py'"),
    Row("file systems", "the report folder on overlay", OVERLAY + "REPORT=m/o RUN PY fault.py'"),
    Row("file systems", "TMPDIR on FUSE", FUSE + "TMPDIR=$PWD/f RUN PY fault.py'"),
    Row("file systems", "the current folder on FUSE", FUSE + "cp *.py f; cd f; RUN PY fault.py'"),
    Row("file systems", "the report folder on FUSE", FUSE + "REPORT=f RUN PY fault.py'"),
    Row("file systems", "TMPDIR is full", FULL + "TMPDIR=$PWD/there RUN PY fault.py'"),
    Row("file systems", "the report folder is full", FULL + "REPORT=there RUN PY fault.py'"),
    Row("file systems", "no inode is left in TMPDIR", INODES + "TMPDIR=$PWD/there RUN PY fault.py'"),
    Row("file systems", "no inode is left in the report folder", INODES + "REPORT=there RUN PY fault.py'"),
    Row(
        "file systems",
        "the disk is full, no fault",
        FULL + "TMPDIR=$PWD/there RUN PY good.py'",
        None,
        "clean",
    ),
    Row(
        "file systems",
        "all is read-only but TMPDIR",
        "unshare -m bash -c 'mount -t tmpfs none tmp; "
        "mount --bind . . ; mount -o remount,bind,ro .; TMPDIR=$PWD/tmp RUN PY fault.py'",
    ),
    Row(
        "file systems",
        "TMPDIR is read-only",
        "unshare -m bash -c 'mount -t tmpfs -o ro none tmp; TMPDIR=$PWD/tmp RUN PY fault.py'",
    ),
    Row(
        "file systems",
        "no /dev/shm",
        "unshare -m bash -c 'mount -t tmpfs -o ro,size=4k none /dev/shm; RUN PY fault.py'",
    ),
    Row("file systems", "no /proc", "unshare -m bash -c 'mount -t tmpfs none /proc; RUN PY fault.py'"),
    Row("file systems", "no /sys", "unshare -m bash -c 'mount -t tmpfs none /sys; RUN PY fault.py'"),
    Row("file systems", "TMPDIR is a link", "ln -s tmp link; TMPDIR=$PWD/link RUN PY fault.py"),
    Row("file systems", "TMPDIR belongs to another user", "chown 65534 tmp; TMPDIR=$PWD/tmp RUN PY fault.py"),
    Row("file systems", "TMPDIR is open to all", "chmod 777 tmp; TMPDIR=$PWD/tmp RUN PY fault.py"),
    Row(
        "file systems",
        "TMPDIR has a newline in its name",
        "mkdir $'a\\nb'; TMPDIR=$PWD/$'a\\nb' RUN PY fault.py",
    ),
    Row(
        "file systems",
        "TMPDIR is removed by the program",
        "TMPDIR=$PWD/tmp RUN PY first.py 'import shutil;shutil.rmtree(os.environ[\"TMPDIR\"])'",
    ),
    Row(
        "file systems",
        "the current folder is removed",
        "mkdir g; cp *.py g; cd g; rm -r $PWD; RUN PY $OLDPWD/fault.py",
    ),
]

LIMITS = [
    Row("limits", f"ulimit {limit}", f"ulimit {limit}; RUN PY fault.py")
    for limit in (
        "-n 32",
        "-n 20",
        "-n 64",
        "-s 1024",
        "-c 0",
        "-c unlimited",
        "-l 0",
        "-i 0",
        "-q 0",
        "-f 100",
        "-f 0",
        "-v 6000000",
        "-d 4000000",
        "-u 64",
        "-t 600",
        "-x 0",
        "-e 0",
    )
]
CGROUP = "g=/sys/fs/cgroup/memory/trapline-test-$$; mkdir $g && trap 'rmdir $g' EXIT; "
CGROUP += "echo {} > $g/memory.limit_in_bytes || exit 125; "
EAT = "x = [bytearray(1 << 24) for _ in range(400)]"
LIMITS += [
    Row(
        "limits",
        "killed for memory, the program alone",
        CGROUP.format("2G") + f"RUN bash -c 'echo $$ > '$g'/cgroup.procs; exec PY then.py \"{EAT}\"'",
    ),
    Row(
        "limits",
        "killed for memory, before anything",
        CGROUP.format("300M") + f"RUN bash -c 'echo $$ > '$g'/cgroup.procs; exec PY -c \"{EAT}\"'",
        None,
        "unknown",
    ),
    Row(
        "limits",
        "no processes left",
        "g=/sys/fs/cgroup/pids/trapline-test-$$; mkdir $g && trap 'echo $$ > /sys/fs/cgroup/pids/cgroup.procs; rmdir $g' EXIT;"
        " echo 24 > $g/pids.max || exit 125; echo $$ > $g/cgroup.procs; RUN env OMP_NUM_THREADS=1 PY fault.py",
    ),
    Row(
        "limits",
        "frozen and thawed",
        "g=/sys/fs/cgroup/freezer/trapline-test-$$; mkdir $g && trap 'rmdir $g' EXIT;"
        " (RUN PY fault.py) & p=$!; echo $p > $g/cgroup.procs || exit 125; sleep 1; echo FROZEN > $g/freezer.state; sleep 1;"
        " echo THAWED > $g/freezer.state; wait $p",
    ),
    Row("limits", "no capabilities", "RUN setpriv --bounding-set -all --no-new-privs PY fault.py"),
    Row(
        "limits",
        "all without capabilities",
        "setpriv --bounding-set -all --inh-caps -all --no-new-privs RUN PY fault.py",
    ),
    Row(
        "limits",
        "another user",
        "chmod 777 . tmp; umask 0; setpriv --reuid 65534 --regid 65534 --clear-groups RUN PY fault.py",
    ),
    Row(
        "limits",
        "the program as another user",
        "chmod 777 . tmp; RUN setpriv --reuid 65534 --regid 65534 --clear-groups PY fault.py",
    ),
    Row("limits", "a user namespace", "unshare -Ur RUN PY fault.py"),
    Row("limits", "the program in a user namespace", "RUN unshare -Ur PY fault.py"),
    Row("limits", "a pid namespace", "unshare -pf --kill-child RUN PY fault.py"),
    Row("limits", "a pid namespace with its own /proc", "unshare -pf --mount-proc RUN PY fault.py"),
    Row("limits", "the program in a pid namespace", "RUN unshare -pf --mount-proc PY fault.py"),
    Row("limits", "no network", "unshare -n RUN PY fault.py"),
    Row("limits", "an ipc namespace", "unshare -i RUN PY fault.py"),
    Row("limits", "a time namespace", "unshare -T --boottime 1000000 --monotonic 1000000 RUN PY fault.py"),
]

CLOCKS = [
    Row("clocks", f"the clock says {when}", f"faketime -f '{when}' RUN PY fault.py")
    for when in (
        "@1970-01-02 00:00:00",
        "@2037-12-31 23:59:59",
        "@2050-01-01 00:00:00",
        "-1d x10",
        "+1y x0.1",
    )
] + [
    Row("clocks", f"the program's clock says {when}", f"RUN faketime -f '{when}' PY fault.py")
    for when in ("@1970-01-02 00:00:00", "@2050-01-01 00:00:00", "i-1.0", "i2.0")
]

WORDS = [
    Row("words", f"locale {setting}", f"{setting} RUN PY fault.py")
    for setting in (
        "LC_ALL=C",
        "LC_ALL=POSIX",
        "LC_ALL=tr_TR.UTF-8",
        "LC_ALL=ja_JP.eucJP",
        "LC_ALL=de_DE",
        "LANG= LC_ALL= LC_CTYPE=",
        "PYTHONIOENCODING=ascii",
        "PYTHONIOENCODING=utf-16",
        "PYTHONIOENCODING=latin-1:strict",
        "PYTHONUTF8=0 LC_ALL=C PYTHONCOERCECLOCALE=0",
        "PYTHONUTF8=1",
        "TERM=dumb",
        "TERM=",
        "COLUMNS=1",
        "COLUMNS=0 LINES=0",
        "COLUMNS=x",
    )
] + [
    Row("words", "a name in Latin-1", "cp fault.py $'caf\\xe9.py'; RUN PY $'caf\\xe9.py'"),
    Row("words", "a name of escapes", "cp fault.py $'a\\x1b]0;x\\x07.py'; RUN PY $'a\\x1b]0;x\\x07.py'"),
    Row("words", "a name with a newline", "cp fault.py $'a\\nb.py'; RUN PY $'a\\nb.py'"),
    Row(
        "words", "a name of 200 characters", "n=$(printf 'x%.0s' $(seq 200)); cp fault.py $n.py; RUN PY $n.py"
    ),
    Row("words", "an argument of 100 kB", "RUN PY fault.py $(printf 'x%.0s' $(seq 100000))"),
    Row("words", "2,000 arguments", "RUN PY fault.py $(seq 2000)"),
    Row("words", "an empty argument", "RUN PY fault.py ''"),
    Row(
        "words",
        "an environment of 1 MB",
        "for i in $(seq 10); do export V$i=$(printf 'x%.0s' $(seq 100000)); done; RUN PY fault.py",
    ),
    Row("words", "a variable that is no UTF-8", "export X=$'\\xff\\xfe'; RUN PY fault.py"),
    Row(
        "words",
        "a source in cp1252",
        "printf '# -*- coding: cp1252 -*-\\ns = \"caf\\xe9\"\\n' > c.py; cat fault.py >> c.py; RUN PY c.py",
    ),
    Row(
        "words", "a source with a mark", "printf '\\xef\\xbb\\xbf' > c.py; cat fault.py >> c.py; RUN PY c.py"
    ),
    Row("words", "a source with CRLF", "sed 's/$/\\r/' fault.py > c.py; RUN PY c.py"),
    Row("words", "a source of form feeds", "sed 's/^print/\\x0cprint/' fault.py > c.py; RUN PY c.py"),
    Row(
        "words",
        "a line of 100 kB",
        "printf 'x = \"%s\"\\n' $(printf 'x%.0s' $(seq 100000)) > c.py; cat fault.py >> c.py; RUN PY c.py",
    ),
    Row("words", "a message of 1 MB", "RUN PY then.py 'raise ValueError(\"x\" * 1000000)'"),
    Row(
        "words",
        "a message of escapes",
        'RUN PY then.py \'raise ValueError(chr(27) + "]0;x" + chr(7) + chr(0x9b) + "2J")\'',
    ),
    Row("words", "a message of lone surrogates", "RUN PY then.py 'raise ValueError(chr(0xdc80))'"),
]
