"""`pratique`: the reports of the library on the command line, without a database; one module for each kind."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from provisioner.cli.explain import COMMANDS as EXPLANATIONS
from provisioner.cli.permissions import COMMANDS as PERMISSIONS
from provisioner.cli.review import COMMANDS as REVIEWS
from provisioner.cli.review import UNKNOWN, Command, Usage, exit_status, source_of
from provisioner.errors import PratiqueError
from provisioner.review.text import visible

__all__ = ["COMMANDS", "Usage", "exit_status", "main", "source_of"]

COMMANDS: tuple[Command, ...] = (*REVIEWS, *PERMISSIONS, *EXPLANATIONS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. Errors are one sentence on stderr, never a traceback."""
    options = _parser().parse_args(argv)
    try:
        return int(options.run(options))
    except (PratiqueError, Usage) as exc:
        code = f" [{exc.code}]" if isinstance(exc, PratiqueError) else ""
        print(f"pratique {options.command}: {visible(str(exc), keep_newlines=True)}{code}", file=sys.stderr)
    except OSError as exc:
        print(
            f"pratique {options.command}: {visible(exc.strerror or 'failed')}: {visible(str(exc.filename or ''))}",
            file=sys.stderr,
        )
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    return UNKNOWN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pratique", description="See what a bundle would do to a cluster, before it does."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.help,
            description=command.help,
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add(sub)
        sub.set_defaults(run=command.run)
    return parser
