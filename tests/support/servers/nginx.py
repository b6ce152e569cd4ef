"""Debian's nginx with the configuration that is shipped, but for its ports and folders."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.folders import ROOT
from tests.support.servers.process import Server, answers_on, free_port

SHIPPED = ROOT / "deploy/nginx.conf"
PROXIES = SHIPPED.with_name("nginx-proxies.conf")
PLACES = "/usr/sbin:/usr/local/sbin"


class Nginx:
    """In front of what listens on the Unix socket `upstream`; `port` is where it is reached.

    `proxies` are networks to write into nginx-proxies.conf, beside what is shipped in it, `edits` what an operator
    replaces in the shipped file, by what stands there.
    """

    def __init__(self, upstream: Path, *proxies: str, edits: Mapping[str, str] | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pratique-nginx-")
        folder = Path(self._folder.name)
        program = shutil.which("nginx") or shutil.which("nginx", path=PLACES)
        if program is None:
            pytest.fail("nginx is not installed: run tests/install")
        self.port = free_port()
        text = SHIPPED.read_text()
        changes = {
            "server unix:/run/pratique/web.sock;": f"server unix:{upstream};",
            "listen 8080 ": f"listen 127.0.0.1:{self.port} ",
            "/tmp/nginx": f"{folder}/nginx",
            "worker_rlimit_nofile 16384;": "",
            "/etc/nginx/pratique/": f"{folder}/pratique/",
            **(edits or {}),
        }
        for shipped, here in changes.items():
            assert shipped in text, f"{shipped} is no longer in {SHIPPED.name}"
            text = text.replace(shipped, here)
        (folder / "pratique").mkdir()
        lines = "".join(f"set_real_ip_from {network};\n" for network in proxies)
        (folder / "pratique" / PROXIES.name).write_text(PROXIES.read_text() + lines)
        config = folder / "nginx.conf"
        config.write_text(text)
        # As shipped, its workers are of the group that the socket is of; as root they would be nobody.
        options = "daemon off; user root;" if os.geteuid() == 0 else "daemon off;"
        command = [program, "-c", config, "-p", folder, "-e", "stderr", "-g", options]
        self.server = Server("nginx", command, folder / "nginx.log")
        self.server.wait(lambda: answers_on(self.port))

    def stop(self) -> None:
        self.server.stop()
        self._folder.cleanup()
