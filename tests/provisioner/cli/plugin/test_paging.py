"""What is longer than a terminal goes through the pager: as a program, at a terminal of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.provisioner.cli.plugin.scene import wish
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig

LINES, COLUMNS = 6, 100
PAGED = "tides: "


def at_a_terminal(*words: str, home: Path) -> str:
    """What a terminal of a few lines shows of this command; a pager marks each line that went through it."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environment = {"PATH": os.defpath, "HOME": str(home), "TERM": "xterm", "PAGER": f"sed 's/^/{PAGED}/'"}
    program = [
        sys.executable,
        "-c",
        "import sys; from provisioner.cli.plugin import main; sys.exit(main(sys.argv[1:]))",
    ]
    process = subprocess.Popen([*program, *words], stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    shown = b""
    # Linux says that nobody has the terminal open any more by an error.
    with contextlib.suppress(OSError):
        while part := os.read(master, 65_536):
            shown += part
    os.close(master)
    process.wait()
    return shown.decode()


@pytest.mark.parametrize("command", ["show", "preview"])
def test_what_is_longer_than_the_terminal_goes_through_the_pager(
    own_sandbox: Endpoint, tmp_path: Path, command: str
) -> None:
    wish(own_sandbox, tmp_path)
    bundle = tmp_path / "bundle.yaml"
    bundle.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n")
    words = {"show": ("show", "web-2"), "preview": ("preview", str(bundle), "--all", "--explain")}[command]
    path = str(kubeconfig(own_sandbox, tmp_path))
    shown = at_a_terminal(*words, "--kubeconfig", path, home=tmp_path).splitlines()
    assert len(shown) > LINES
    assert all(line.startswith(PAGED) for line in shown), "\n".join(shown)


def test_what_fits_is_printed(own_sandbox: Endpoint, tmp_path: Path) -> None:
    wish(own_sandbox, tmp_path)
    path = str(kubeconfig(own_sandbox, tmp_path))
    shown = at_a_terminal("list", "-o", "name", "--kubeconfig", path, home=tmp_path)
    assert shown.splitlines() == ["bundledeploymentrequest.core.rukpak.io/web-2"]
