"""`pratique plugins`: the formats, sources and checks of other packages, and why one of them is disabled."""

from __future__ import annotations

import argparse
import json
import sys

from provisioner.cli.arguments import ReviewCommand
from provisioner.cli.review import FINDINGS, OK
from provisioner.render import format_plugins
from provisioner.review.frame import check_plugins
from provisioner.source import source_plugins

_EPILOG = """\
Plug-ins are loaded as the service loads them. None is run.

exit status
  0  no plug-in is disabled
  1  a plug-in is disabled
"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")


def _run(options: argparse.Namespace) -> int:
    found = [*format_plugins(), *source_plugins(), *check_plugins()]
    if options.output == "json":
        sys.stdout.write(
            json.dumps(
                [
                    (
                        {
                            "group": str(plugin.group),
                            "name": plugin.name,
                            "package": plugin.package,
                            "target": plugin.target,
                            "problem": plugin.problem,
                        }
                    )
                    for plugin in found
                ],
                indent=2,
                sort_keys=True,
            )
            + "\n"
        )
    else:
        lines = [f"{plugin}{f' is disabled: {plugin.problem}' if plugin.problem else ''}" for plugin in found]
        sys.stdout.write("\n".join(lines or ["no plug-in is installed"]) + "\n")
    return FINDINGS if any(plugin.problem for plugin in found) else OK


COMMANDS: tuple[ReviewCommand, ...] = (
    ReviewCommand("plugins", "list installed plug-ins, and why one is disabled", _add, _run, _EPILOG),
)
