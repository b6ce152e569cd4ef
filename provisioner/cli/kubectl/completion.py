"""`kubectl_complete-pratique`: what kubectl's shell completion asks of a plug-in (kubectl 1.26 and later).

Standard output holds one proposal a line, then a directive of cobra's: `:4` says that no file names are meant, `:0`
that they are.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl import login
from provisioner.cli.kubectl.cluster import (
    CLUSTER_OPTIONS,
    DEPLOYMENT,
    REQUEST,
    cluster_of,
    is_open,
    list_contexts,
    list_kind,
    options_before,
    with_options_behind,
)
from provisioner.cli.kubectl.commands import COMMANDS, parser_of
from provisioner.cli.kubectl.requests import objects_to_diff
from provisioner.errors import PratiqueError
from provisioner.review.rules import rule_ids

FILES, NO_FILES = ":0", ":4"
# Names come from bundles, and the scripts of kubectl before 1.34 have the shell expand what is proposed.
HARMLESS = re.compile(r"[A-Za-z0-9._:/@=+-]+", re.ASCII)
DECIDING = ("approve", "deny", "request-changes")
OF_REQUESTS = ("show", "diff", "rules", *DECIDING)
OF_DEPLOYMENTS = ("history", "rollback", "rotate", "pause", "resume", "grant")
OF_FILES = ("preview", "convert", "rbac")
SUBJECTS = ("user:", "group:", "serviceaccount:")
FILE_OPTIONS = ("--kubeconfig", "--config", "--docker-config", "--filename", "-f")


def complete(argv: Sequence[str] | None = None) -> int:
    """Print what may follow; a cluster that does not answer proposes nothing."""
    words = list(sys.argv[1:] if argv is None else argv)
    begun, before = (words[-1] if words else ""), with_options_behind(words[:-1])
    command = before[0] if before and before[0] in {known.name for known in COMMANDS} else ""
    if (before and before[-1] in FILE_OPTIONS) or (command in OF_FILES and not begun.startswith("-")):
        print(FILES)
        return 0
    for proposal in sorted(_propose(command, before, begun)):
        if proposal.startswith(begun) and HARMLESS.fullmatch(proposal):
            print(proposal)
    print(NO_FILES)
    return 0


def _propose(command: str, before: Sequence[str], begun: str) -> list[str]:
    if before and before[-1] == "--context":
        return list_contexts()
    if not command:
        return _complete_command(before, begun)
    options = {action.option_strings[-1]: action for action in parser_of(command)._actions if action.option_strings}
    asked = options.get(before[-1]) if before else None
    if asked is not None and asked.nargs != 0:
        return _complete_values(asked, before)
    if begun.startswith("-"):
        return [*options]
    if command == "explain":
        return list(rule_ids())
    given = [word for at, word in enumerate(before) if _is_argument(word, before[at - 1] if at else "", options)]
    try:
        if len(given) > 1:
            return _complete_objects(before) if command == "diff" and len(given) == 2 else []
        return _complete_names(command, before)
    except (PratiqueError, Usage, OSError):
        return []


def _complete_command(before: Sequence[str], begun: str) -> list[str]:
    """Before the command, only options about the cluster may stand, each with its value."""
    given = options_before(before)
    if given != len(before):
        return []
    return [*CLUSTER_OPTIONS] if begun.startswith("-") else [known.name for known in COMMANDS]


def _complete_values(option: argparse.Action, before: Sequence[str]) -> list[str]:
    name = option.option_strings[-1]
    if name == "--service":
        return login.known_services()
    if name == "--to":
        return [*SUBJECTS]
    if name == "--of":
        try:
            return [
                str(item["metadata"]["name"]) for item in list_kind(cluster_of(_cluster_options(before)), DEPLOYMENT)
            ]
        except (PratiqueError, Usage, OSError):
            return []
    return [str(choice) for choice in option.choices or ()]


def _is_argument(word: str, previous: str, options: dict[str, argparse.Action]) -> bool:
    """Whether a word is no option, nor the value of the option before it."""
    takes_value = previous in options and options[previous].nargs != 0
    return not word.startswith("-") and not takes_value


def _complete_names(command: str, before: Sequence[str]) -> list[str]:
    if command not in (*OF_REQUESTS, *OF_DEPLOYMENTS):
        return []
    api = cluster_of(_cluster_options(before))
    found = list_kind(api, REQUEST if command in OF_REQUESTS else DEPLOYMENT)
    if command in DECIDING:
        found = [request for request in found if is_open(request)]
    return [str(item["metadata"]["name"]) for item in found]


def _cluster_options(before: Sequence[str]) -> argparse.Namespace:
    """What was typed of them; groups are asked of nobody here, who would be impersonated with them."""
    named = {"kubeconfig": _typed_value(before, "--kubeconfig"), "context": _typed_value(before, "--context")}
    return argparse.Namespace(**named, acting_as="", acting_as_groups=[])


def _complete_objects(before: Sequence[str]) -> list[str]:
    """What a request is about, as its report at the service says to whom has logged in there."""
    try:
        # What it would complain about is not typed yet.
        with redirect_stderr(io.StringIO()):
            options = parser_of("diff").parse_args([word for word in before if word != "diff"])
    except SystemExit:
        return []
    return objects_to_diff(options)


def _typed_value(before: Sequence[str], option: str) -> str:
    """What was typed for an option, as `--context x` or `--context=x`."""
    for at, word in enumerate(before):
        if word == option and at + 1 < len(before):
            return before[at + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return ""
