"""The collector of garbage passes over what a web process has loaded: all pages, before anybody asks for one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from approvals.encryption.keys import new_key
from tests.support.approvals.databases import environment
from tests.support.folders import ROOT
from tests.support.patience import scaled

PROGRAM = """
import gc, sys
from approvals.project import gunicorn, wsgi
gunicorn.freeze_pages()
left = len(gc.get_objects())
assert gc.get_freeze_count() > 10 * left, left
assert "approvals.web.inbox" in sys.modules
"""


@pytest.mark.thorough
def test_what_a_web_process_has_loaded_is_not_looked_through_again(tmp_path: Path) -> None:
    about = {
        **environment(f"sqlite:///{tmp_path}/none.sqlite3"),
        "PRATIQUE_ENCRYPTION_KEYS": new_key(),
        "DJANGO_SETTINGS_MODULE": "approvals.project.settings",
    }
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, env=about, capture_output=True, text=True, check=False, timeout=scaled(60))
    assert done.returncode == 0, done.stdout + done.stderr
