"""Each process says at its start which plug-ins are broken, in its log and in the notes of `/readyz`."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading

from approvals.health_endpoints import notes
from provisioner.plugins import PluginGroup, installed

logger = logging.getLogger(__name__)

SECONDS = 300.0
SUBJECT = "plugins"


def tell_broken_plugins() -> threading.Thread:
    """Begin to look, in a thread that ends with the process; nothing waits for the answers."""
    thread = threading.Thread(target=_tell, daemon=True, name="plug-ins")
    thread.start()
    return thread


def _tell() -> None:
    broken = look()
    for name, words in sorted(broken.items()):
        logger.error("a plug-in is disabled", extra={"plugin": name, "problem": words})
    notes.put(SUBJECT, broken)


def look() -> dict[str, str]:
    """What is wrong, by plug-in. They are loaded by a process of its own, so that none can end this one."""
    if not any(installed(group, ()) for group in PluginGroup):
        return {}
    command = [sys.executable, "-m", "provisioner.cli", "plugins", "--output", "json"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)  # noqa: S603 -- our own words
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as exc:
        words = f"nobody could find out which of them work ({type(exc).__name__}): run `pratique plugins`"
        return {"all": words}
    return {f"{one['group']} {one['name']} of {one['package']}": one["problem"] for one in found if one["problem"]}
