"""What the kernel takes from a process that reads what is untrusted: files, network, and the sight of other processes.

None of it needs a right. Each layer holds by itself, and whoever asks for one is told whether the kernel gave it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_PR_SET_DEATH_SIGNAL, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38

# Landlock: the numbers of its calls are the same on every machine.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _READ_FILE, _READ_DIR = 1, 1 << 2, 1 << 3
# By the first version that knows them: every access to files; abstract sockets and signals of others.
_FILE_ACCESSES = {1: 0x1FFF, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_NETWORK_VERSION, _SCOPES_VERSION, _SCOPES = 4, 6, 0x3

# seccomp: what is allowed once everything is loaded, by machine. Nothing in it opens, connects, runs or looks at
# another process; what is not in it fails as what nobody has a right to. None is what a machine does not have.
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_ALLOWED = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "lseek": (8, 62), "fcntl": (72, 25),
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214), "mremap": (25, 216),
    "madvise": (28, 233), "membarrier": (324, 283),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "futex": (202, 98), "set_robust_list": (273, 99),
    "rseq": (334, 293), "restart_syscall": (219, 128), "exit": (60, 93), "exit_group": (231, 94),
    "getpid": (39, 172), "gettid": (186, 178), "getrusage": (98, 165), "getrandom": (318, 278),
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_gettime": (228, 113), "gettimeofday": (96, 169),
    "arch_prctl": (158, None), "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "eventfd2": (290, 19), "pipe2": (293, 59), "recvfrom": (45, 207), "sendto": (44, 206), "shutdown": (48, 210),
}  # fmt: skip
# No path leads anywhere: whatever is asked for is not there, so that nobody learns what is.
_PATHS = {
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "stat": (4, None), "lstat": (6, None),
    "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78),
}  # fmt: skip
_CLONE, _CLONE3, _TGKILL, _EXECVEAT = (56, 220), (435, 435), (234, 131), (322, 281)
_CLONE_THREAD = 0x10000
_SET_FILTER, _ASK_ACTION, _ALL_THREADS = 1, 2, 1
_SECCOMP = (317, 277)
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _IS_EQUAL, _HAS_BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16


def hide_where_nothing_else_can() -> None:
    """Close /proc/PID of this process to others of its account, where the kernel cannot take system calls from them.

    Nowhere else: it hides from the worker, too, how much of its memory this process shares with others.
    """
    if sys.platform == "linux" and not _has_filters():
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def end_with_parent() -> None:
    """Have the kernel kill this process with the thread that started it, whatever it does then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def weakness() -> str:
    """What the kernel of this machine leaves to whatever renders charts, in words for operators; "" for nothing.

    Only a process that tries it knows whether it gets a network of its own: one is started where that matters.
    """
    if sys.platform == "linux" and _has_filters():
        return ""
    left = [] if sys.platform == "linux" and _landlock_version() >= 1 else ["files"]
    trial = [sys.executable, "-c", f"from {__name__} import take_network; print(take_network())"]
    done = subprocess.run(trial, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 -- our own words
    left += [] if done.stdout == "True\n" else ["network"]
    if not left:
        return ""
    return (
        f"the kernel does not keep whatever renders charts from {' and '.join(left)}: only Pratique's own checks do. "
        "Run workers on Linux on x86-64 or ARM64 with seccomp"
    )


def limit_use(limits: Mapping[int, int]) -> None:
    """Hold this process to limits of the kernel, by their numbers, from its next instruction on; it cannot take them
    off. It writes no file and leaves no core. Linux has to know all of them.
    """
    for number, most in {resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0, **limits}.items():
        try:
            resource.setrlimit(number, (most, most))
        except (OSError, ValueError):
            if sys.platform == "linux":
                raise


def take_network() -> bool:
    """Leave this process a network of its own, which leads nowhere; whether the kernel did."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).unshare(_NEW_NETWORK if os.geteuid() == 0 else _NEW_USER | _NEW_NETWORK) == 0)


def take_files(*, readable: Iterable[Path] = (), program: Path | None = None) -> bool:
    """Leave this thread, and those that it starts, no files but those below `readable`, and no processes but its own.
    It may run `program`, where one is named.

    Whether the kernel did: it has Landlock since 5.13, where that is switched on. Files that are open stay so.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = _landlock_version()
    if version < 1:
        return False
    accesses = sum(bits for since, bits in _FILE_ACCESSES.items() if since <= version)
    fields = [
        accesses,
        *([0] if version >= _NETWORK_VERSION else []),
        *([_SCOPES] if version >= _SCOPES_VERSION else []),
    ]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    with ExitStack() as stack:
        ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
        if ruleset < 0:
            return False
        stack.callback(os.close, ruleset)
        rights = dict.fromkeys(readable, _READ_FILE | _READ_DIR)
        for path, right in (rights | ({program: _READ_FILE | _EXECUTE} if program else {})).items():
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            stack.callback(os.close, place)
            if libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", right, place), 0):
                return False
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return bool(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)


def take_system_calls(*, program: int | None = None) -> bool:
    """Leave all threads of this process memory, time, and the descriptors that are open; whether the kernel did.

    No file, socket, program or other process can be reached any more, whatever is loaded here. The descriptor `program`
    can be run (execveat), under the same filter: what it runs opens nothing either, so it has to be linked statically.
    """
    if sys.platform != "linux" or not _has_filters():
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    lines = _filter(*_MACHINES[platform.machine()], os.getpid(), program)
    held = ctypes.create_string_buffer(lines, len(lines))
    head = struct.pack("@HP", len(lines) // 8, ctypes.addressof(held))
    seccomp = _SECCOMP[_MACHINES[platform.machine()][0]]
    return bool(libc.syscall(seccomp, _SET_FILTER, _ALL_THREADS, head) == 0)


def _landlock_version() -> int:
    return int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION))


def _has_filters() -> bool:
    if platform.machine() not in _MACHINES:
        return False
    seccomp = _SECCOMP[_MACHINES[platform.machine()][0]]
    return bool(ctypes.CDLL(None).syscall(seccomp, _ASK_ACTION, 0, struct.pack("=I", _FAIL)) == 0)


def _filter(machine: int, audit_number: int, pid: int, program: int | None) -> bytes:
    """The filter as the kernel reads it: a list of (code, steps if true, steps if false, value)."""
    lines = [(_LOAD, 0, 0, _MACHINE_AT), (_IS_EQUAL, 1, 0, audit_number), (_RETURN, 0, 0, _KILL)]
    lines.append((_LOAD, 0, 0, _NUMBER_AT))
    answers = [(numbers[machine], _ALLOW) for numbers in _ALLOWED.values()]
    answers += [(numbers[machine], _FAIL | errno.ENOENT) for numbers in _PATHS.values()]
    # As from a kernel that does not have it: whoever wants a thread asks for `clone`, whose flags can be read here.
    answers.append((_CLONE3[machine], _FAIL | errno.ENOSYS))
    for number, answer in answers:
        if number is None:
            continue
        lines += [(_IS_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]
    allowed_with = [(_CLONE[machine], _HAS_BITS, _CLONE_THREAD), (_TGKILL[machine], _IS_EQUAL, pid)]
    if program is not None:
        allowed_with.append((_EXECVEAT[machine], _IS_EQUAL, program))
    for number, code, value in allowed_with:
        lines += [(_IS_EQUAL, 0, 4, number), (_LOAD, 0, 0, _FIRST_ARGUMENT_AT), (code, 0, 1, value)]
        lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _FAIL | errno.EPERM)]
    lines.append((_RETURN, 0, 0, _FAIL | errno.EPERM))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
