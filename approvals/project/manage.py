"""`pratique-manage`, and `manage.py` in a checkout: Django's commands, with the settings of this service."""

from __future__ import annotations

import os
import sys
from importlib import metadata

import django
from django.core.exceptions import ImproperlyConfigured


def main() -> None:
    """Run the command that `sys.argv` names. Settings that cannot be read end it with one sentence, not a traceback."""
    if sys.argv[1:] in (["version"], ["--version"]):
        print(f"pratique {metadata.version('pratique')} (Django {django.get_version()})")  # noqa: T201 - the answer
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
    try:
        # Commands wake workers: the address of the queue comes with it.
        from approvals.project import celery, privacy  # noqa: F401, PLC0415 - not before the settings are named
    except (ImproperlyConfigured, ValueError) as exc:
        sys.exit(f"pratique-manage: {exc}")
    privacy.keep_files_private()
    from approvals.project.command_help import Utility  # noqa: PLC0415 - after the settings are named

    Utility(sys.argv).execute()


if __name__ == "__main__":
    main()
