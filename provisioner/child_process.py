"""A child process that runs a module of ours on what is untrusted."""

from __future__ import annotations

import os
import subprocess
import sys

from provisioner.confinement import hide_where_nothing_else_can


def started(module: str, **environment: str) -> subprocess.Popen[bytes]:
    """A new child. Of our environment it sees where modules are, and of our files its two pipes. Raises OSError."""
    hide_where_nothing_else_can()
    path = os.pathsep.join(os.path.abspath(one) for one in sys.path)
    return subprocess.Popen(  # noqa: S603 -- our own interpreter and module; what is untrusted comes through a pipe
        [sys.executable, "-B", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        close_fds=True,
        process_group=0,
        cwd="/",
        env={"PYTHONPATH": path, **environment},
    )
