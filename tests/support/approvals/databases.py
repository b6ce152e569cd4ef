"""A database of its own, SQLite's or PostgreSQL's, and our commands on it, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import ROOT

# Both scripts see the tables as they are at their migration, which the models of today do not fit.
MODELS = """
import json
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from approvals import audit
now = timezone.now()
def model(name):
    return apps.get_model("approvals", name).objects
"""
AT = """
executor = MigrationExecutor(connection)
apps = executor.loader.project_state([("approvals", next(
    name for app, name in executor.loader.graph.nodes if app == "approvals" and name.startswith("{number}")
))]).apps
"""


def environment(url: str) -> dict[str, str]:
    return {**os.environ, "PRATIQUE_DATABASE_URL": url, "PRATIQUE_SECRET_KEY": "x" * 50}


def manage(url: str, *words: str) -> str:
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(url), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/pratique.sqlite3"
    service: Any = request.getfixturevalue("postgres")
    return str(service.fresh_database())


def ran(url: str, number: str, program: str) -> str:
    """The last line that a program prints which sees the tables of one migration."""
    text = MODELS + AT.replace("{number}", number) + program
    return manage(url, "shell", "--verbosity", "0", "-c", text).splitlines()[-1]
