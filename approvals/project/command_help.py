"""What `pratique-manage help` prints: the commands of this service with a sentence each, before those of other apps."""

from __future__ import annotations

import re

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
