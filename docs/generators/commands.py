"""docs/reference/pratique.md and pratique-manage.md: each command with its options, from the parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from django.core.management.base import BaseCommand, CommandParser

from approvals.management import commands
from docs.generators import markdown
from provisioner.cli.commands import find_commands
from provisioner.cli.kubectl.commands import COMMANDS as PLUGIN_COMMANDS
from provisioner.cli.kubectl.commands import EPILOG

PLUGIN_EXIT = ["```text", *EPILOG.rstrip().splitlines(), "```", ""]
# Called by `make demo` only.
INTERNAL = {"demo_seed"}
# Commands of Django that operators need; the rest of them is not ours to explain.
OF_DJANGO = (
    ("check", "Check the settings and say what is wrong."),
    ("collectstatic", "Copy the style sheets and scripts into `PRATIQUE_STATIC_DIR`. The image has done it."),
    (
        "createsuperuser",
        "Create a local account, for `PRATIQUE_LOCAL_ACCOUNTS=true`. It has no rights on a cluster until it is mapped.",
    ),
    ("migrate", "Bring the database and the content store to this version."),
)


def pratique() -> str:
    lines = markdown.heading_of_page(
        "pratique",
        "the parsers of provisioner/cli",
        "`pratique` makes the same reports as the service, without a database and without the service. It does not "
        "change a cluster. Reports go to standard output, errors to standard error. With `-o json` the output has the "
        "same shape even if there is an error.",
    )
    lines += _index((it.name, _sentence(it.help)) for it in find_commands(()))
    for command in find_commands(()):
        parser = argparse.ArgumentParser(prog=f"pratique {command.name}", add_help=False)
        command.add(parser)
        lines += [f"## {command.name}", "", _sentence(command.help), "", *_arguments(parser)]
        if command.epilog:
            lines += ["```text", *command.epilog.rstrip().splitlines(), "```", ""]
    return markdown.page(lines)


def kubectl_pratique() -> str:
    lines = markdown.heading_of_page(
        "kubectl pratique",
        "the parsers of provisioner/cli/kubectl",
        "`kubectl pratique` is a plug-in of kubectl. You review requests with it and your kubeconfig, "
        "see "
        "[working with kubectl](../operating/kubectl.md). Results go to standard output; questions "
        "and errors go to standard error.",
    )
    lines += [*PLUGIN_EXIT, *_index((it.name, _sentence(it.help)) for it in PLUGIN_COMMANDS)]
    for command in PLUGIN_COMMANDS:
        parser = argparse.ArgumentParser(prog=f"kubectl pratique {command.name}", add_help=False)
        command.add(parser)
        lines += [f"## {command.name}", "", _sentence(command.help), "", *_arguments(parser)]
        if command.epilog:
            lines += ["```text", *command.epilog.rstrip().splitlines(), "```", ""]
    return markdown.page(lines)


def pratique_manage() -> str:
    lines = markdown.heading_of_page(
        "pratique-manage",
        "the parsers of approvals/management/commands",
        "`pratique-manage` is for operators. It reads the same [settings](settings.md) as the service and works on its "
        "database. In a checkout, `manage.py` is the same program. For the demo, run `.demo/pratique-manage`.",
    )
    found = [(name, _command(name)) for _, name, _ in iter_modules(commands.__path__) if name not in INTERNAL]
    lines += _index((name, _first_sentence(command.help)) for name, command in found)
    for name, command in found:
        parser = argparse.ArgumentParser(prog=f"pratique-manage {name}", add_help=False)
        command.add_arguments(_without_types(parser))
        lines += [f"## {name}", "", _sentence(command.help), "", *_arguments(parser)]
    lines += ["## Commands of Django", ""]
    lines += markdown.table(("command", "what it does"), ((f"`{name}`", does) for name, does in OF_DJANGO))
    return markdown.page(lines)


def _index(found: Iterable[tuple[str, str]]) -> list[str]:
    return markdown.table(("command", "what it does"), ((f"[{name}](#{name})", words) for name, words in found))


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    """Not the help of argparse: its form differs between versions of Python."""
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    if not actions:
        return ["It takes no options.", ""]
    rows = ((f"`{_spelt(action)}`", _default(action), _sentence(_words(action))) for action in actions)
    return markdown.table(("argument", "default", "meaning"), rows)


def _spelt(action: argparse.Action) -> str:
    value = _value(action)
    if not action.option_strings:
        return f"{value} ..." if action.nargs in {"*", "+"} else value
    option = ", ".join(action.option_strings)
    return option if action.nargs == 0 else f"{option} {value}"


def _value(action: argparse.Action) -> str:
    if action.choices is not None:
        return "{" + ",".join(str(it) for it in action.choices) + "}"
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.upper() if not action.option_strings else action.option_strings[-1].lstrip("-").upper()


def _words(action: argparse.Action) -> str:
    """Its help without the default, which has a column of its own."""
    return re.sub(r"(; |, |^)default: %\(default\)s$", "", action.help or "").replace("%%", "%")


def _default(action: argparse.Action) -> str:
    if action.required:
        return "required"
    default = action.default
    return f"`{default}`" if isinstance(default, str | int) and default not in ("", False) else ""


def _command(name: str) -> BaseCommand:
    command = import_module(f"{commands.__name__}.{name}").Command()
    assert isinstance(command, BaseCommand)
    return command


def _without_types(parser: argparse.ArgumentParser) -> CommandParser:
    """Commands declare their arguments to Django's parser, which is one of argparse."""
    return cast(CommandParser, parser)


def _sentence(words: str) -> str:
    words = words.strip()
    if not words:
        return ""
    return f"{words[0].upper()}{words[1:]}" + ("" if words.endswith((".", ":", "`")) else ".")


def _first_sentence(words: str) -> str:
    return _sentence(words.split(". ", maxsplit=1)[0].split(": ", maxsplit=1)[0])
