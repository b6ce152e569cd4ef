"""Each process says at its start, in its log, if it cannot use the content store; `/readyz` goes on saying so."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Mapping

from approvals.encryption.files import content_files
from approvals.errors import StoreUnavailable
from provisioner.plugins import PluginGroup, installed

logger = logging.getLogger(__name__)


_notes: dict[str, dict[str, str]] = {}
SECONDS = 300.0
SUBJECT = "plugins"


def tell_content_store() -> threading.Thread:
    """Begin to look, in a thread that ends with the process; nothing waits for the answer."""
    thread = threading.Thread(target=_check_content_store, daemon=True, name="content-store")
    thread.start()
    return thread


def _check_content_store() -> None:
    try:
        content_files().look()
    except (StoreUnavailable, OSError) as exc:
        logger.error("the content store cannot be used", extra={"problem": str(exc)})


def put_notes(subject: str, words: Mapping[str, str]) -> None:
    """Say this about `subject` from now on, by what it concerns; nothing where `words` are empty."""
    _notes[subject] = dict(words)


def all_notes() -> dict[str, dict[str, str]]:
    return {subject: words for subject, words in sorted(_notes.items()) if words}


def notes_about(subject: str) -> dict[str, str] | None:
    """What was said last about `subject`; None where nobody has looked yet."""
    return _notes.get(subject)


def tell_broken_plugins() -> threading.Thread:
    """Begin to look, in a thread that ends with the process; nothing waits for the answers."""
    thread = threading.Thread(target=_check_plugins, daemon=True, name="plug-ins")
    thread.start()
    return thread


def _check_plugins() -> None:
    broken = find_broken_plugins()
    for name, words in sorted(broken.items()):
        logger.error("a plug-in is disabled", extra={"plugin": name, "problem": words})
    put_notes(SUBJECT, broken)


def find_broken_plugins() -> dict[str, str]:
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
