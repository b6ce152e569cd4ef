"""`pratique-manage`, and `manage.py` in a checkout: Django's commands, with the settings of this service."""

from __future__ import annotations

import os
import re
import sys
from importlib import metadata

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import ManagementUtility, get_commands, load_command_class

OURS = "approvals"
# Commands of Django that the manual tells operators to use.
USED = ("changepassword", "check", "migrate")
USAGE = """pratique-manage: run and operate Pratique

Usage: pratique-manage COMMAND [OPTIONS]
       pratique-manage help COMMAND      show the options of a command
       pratique-manage help --commands   list all commands, including those of Django and other apps

Commands of Pratique:
"""


class Utility(ManagementUtility):
    """Django's own, with our help."""

    def main_help_text(self, commands_only: bool = False) -> str:
        if commands_only:
            return super().main_help_text(commands_only)
        apps = get_commands()
        ours = sorted(name for name, app in apps.items() if app == OURS)
        width = max(map(len, (*ours, *USED)))
        lines = [f"  {name:{width}}  {_first_sentence(name, apps[name])}" for name in (*ours, *USED) if name in apps]
        return USAGE + "\n".join(lines[: len(ours)]) + "\n\nFrom Django:\n" + "\n".join(lines[len(ours) :])


def _first_sentence(name: str, app: str) -> str:
    words = " ".join(str(load_command_class(app, name).help).split())
    return re.split(r"(?<=[\w)])\.(?:\s|$)|: pratique-manage ", words, maxsplit=1)[0].rstrip(".") + "."


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
    Utility(sys.argv).execute()


if __name__ == "__main__":
    main()
