"""without.py ERROR CALLS COMMAND...: runs a command for which these system calls fail with this error, as a
container's seccomp profile makes them fail. Exits with 125 where that cannot be had."""

import ctypes
import errno
import os
import platform
import struct
import sys

# By number, on x86-64.
CALLS = {
    "bpf": 321,
    "clone3": 435,
    "close_range": 436,
    "copy_file_range": 326,
    "epoll_create1": 291,
    "eventfd2": 290,
    "fallocate": 285,
    "faccessat2": 439,
    "flock": 73,
    "fsync": 74,
    "ftruncate": 77,
    "getrandom": 318,
    "inotify_init1": 294,
    "io_uring_setup": 425,
    "kill": 62,
    "linkat": 265,
    "mbind": 237,
    "membarrier": 324,
    "memfd_create": 319,
    "mlock": 149,
    "openat2": 437,
    "perf_event_open": 298,
    "pidfd_open": 434,
    "pidfd_send_signal": 424,
    "prctl": 157,
    "prlimit64": 302,
    "process_vm_readv": 310,
    "ptrace": 101,
    "renameat2": 316,
    "rseq": 334,
    "sched_getaffinity": 204,
    "sched_setaffinity": 203,
    "sendfile": 40,
    "setpgid": 109,
    "setpriority": 141,
    "setsid": 112,
    "signalfd4": 289,
    "socket": 41,
    "socketpair": 53,
    "splice": 275,
    "statx": 332,
    "sysinfo": 99,
    "timer_create": 222,
    "timerfd_create": 283,
    "uname": 63,
    "unshare": 272,
    "userfaultfd": 323,
    "utimensat": 280,
    "vfork": 58,
    "waitid": 247,
}
LOAD, EQUALS, RETURN = 0x20, 0x15, 0x06  # of the filter's machine: linux/bpf_common.h
REFUSE, ALLOW = 0x00050000, 0x7FFF0000  # linux/seccomp.h
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2  # linux/prctl.h


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_void_p)]


def refuse(numbers, error):
    lines = struct.pack("HBBI", LOAD, 0, 0, 0)
    for number in numbers:
        lines += struct.pack("HBBI", EQUALS, 0, 1, number)
        lines += struct.pack("HBBI", RETURN, 0, 0, REFUSE | error)
    lines += struct.pack("HBBI", RETURN, 0, 0, ALLOW)
    text = ctypes.create_string_buffer(lines)
    program = Program(len(lines) // 8, ctypes.addressof(text))
    prctl = ctypes.CDLL(None).prctl
    return prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and prctl(SECCOMP, FILTER, ctypes.byref(program)) == 0


if platform.machine() != "x86_64" or not refuse(
    [CALLS[name] for name in sys.argv[2].split(",")], getattr(errno, sys.argv[1])
):
    sys.exit(125)
os.execvp(sys.argv[3], sys.argv[3:])
