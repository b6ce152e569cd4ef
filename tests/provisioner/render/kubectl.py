"""How the real kubectl reads YAML: `label --local` reads any kind, needs no server, and prints JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from provisioner.render.canonical import canonical


def ask(kubectl: Path, text: str) -> tuple[int, str]:
    """Its exit code and what it printed; it reads nothing but its input."""
    command = [str(kubectl), "label", "--local", "-f", "-", "x=y", "-o", "json"]
    answer = subprocess.run(
        command, input=text.encode(), capture_output=True, check=False, env={"KUBECONFIG": "/dev/null", "HOME": "/"}
    )
    return answer.returncode, (answer.stdout or answer.stderr).decode()


def read_by_kubectl(kubectl: Path, text: str) -> list[Any]:
    code, printed = ask(kubectl, text)
    assert code == 0, printed
    objects, end = [], 0
    while end < len(printed.rstrip()):
        found, end = json.JSONDecoder().raw_decode(printed, end)
        end += 1
        del found["metadata"]["labels"]
        objects.append(found)
    return [canonical(found) for found in objects]
