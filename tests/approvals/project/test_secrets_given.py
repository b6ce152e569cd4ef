"""Whoever serves or keeps something needs its own secrets, whatever the words of its command are."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.folders import ROOT

START = "import sys; sys.argv = sys.argv[1:]; from django.conf import settings; print(bool(settings.PRATIQUE['ENCRYPTION_KEYS']))"


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The settings as a process with these arguments reads them, without any secret in its environment."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PRATIQUE_", "PYTEST"))}
    environment = {**bare, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "approvals.project.settings"}
    return subprocess.run(
        [sys.executable, "-c", START, *arguments], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("pratique-manage", "map_identity", "--cluster", "x", "--as", "x", "--", "--help"),
        ("celery", "--app", "x", "worker", "--hostname", "spectacular"),
        *(
            pytest.param(words, marks=pytest.mark.thorough)
            for words in (
                ("pratique-manage", "register_cluster", "demo", "--kubeconfig", "mypy"),
                ("celery", "--app", "x", "beat", "--schedule", "/var/lib/demo"),
                ("manage.py", "watch", "collectstatic"),
                ("celery", "--help"),
                ("demo", "migrate"),
            )
        ),
    ],
)
def test_S30_a_word_among_the_arguments_opens_no_service_without_its_secrets(arguments: tuple[str, ...]) -> None:
    done = started(*arguments)
    assert done.returncode != 0
    assert "PRATIQUE_SECRET_KEY is empty" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        *(("new_encryption_key",), ("rights", "--help")),
        *(
            pytest.param(words, marks=pytest.mark.thorough)
            for words in (("collectstatic",), (), ("help",), ("help", "rights"), ("--help",))
        ),
    ],
    ids=" ".join,
)
def test_S30_a_tool_needs_no_secret_and_has_no_key_that_others_know(arguments: tuple[str, ...]) -> None:
    done = started("pratique-manage", *arguments)
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr
