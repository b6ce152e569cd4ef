"""The child process that becomes a program of ours which reads what is untrusted: `python -m` with PROGRAM set.

The limits of the kernel hold before the program runs its first instruction, and it cannot take them off: no file, no
network, no other program or process, so much memory and processor time. It has to be linked statically.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from provisioner import confinement

MODULE = "provisioner.confined_program"
PROGRAM = "PRATIQUE_CONFINED_PROGRAM"
LEFT = "PRATIQUE_LEFT"  # for the program: what the kernel left it
MEMORY_BYTES = 384 * 2**20
CPU_SECONDS = 20
PROCESSORS = 2


def main() -> None:
    # Go reserves much more address space than it ever uses, so the limit is on what can be written to.
    confinement.limit_use({resource.RLIMIT_CPU: CPU_SECONDS, resource.RLIMIT_DATA: MEMORY_BYTES})
    path = Path(os.environ[PROGRAM])
    # Without PATH it finds no program, and nobody listens where it would ask the network.
    environment = {"GOMAXPROCS": str(PROCESSORS), "GOMEMLIMIT": str(MEMORY_BYTES * 2 // 3), "PATH": ""}
    confinement.end_with_parent()
    has_network = not confinement.take_network()
    if sys.platform != "linux":
        os.execve(path, [path.name], environment | {LEFT: "network files"})  # noqa: S606 - our own program, run without a shell
    program = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    has_files = not confinement.take_files(program=path)
    if not confinement.take_system_calls(program=program):
        environment[LEFT] = " ".join(["network"] * has_network + ["files"] * has_files)
    os.execve(program, [path.name], environment)  # noqa: S606 - our own program, run without a shell, by its descriptor or path


if __name__ == "__main__":
    main()
