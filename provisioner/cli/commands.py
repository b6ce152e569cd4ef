"""The parser of `pratique` and the table of its commands."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import metadata

from provisioner.cli.arguments import ReviewCommand, Usage
from provisioner.cli.review import COMMANDS as REVIEWS
from provisioner.cli.review import UNKNOWN
from provisioner.errors import PratiqueError
from provisioner.escaping import visible


def find_commands(argv: Sequence[str]) -> tuple[ReviewCommand, ...]:
    """The commands that these arguments may mean: what a review does not need takes a tenth of its time to load."""
    if argv and argv[0] in {command.name for command in REVIEWS}:
        return REVIEWS
    from provisioner.cli.catalog import COMMANDS as CATALOGS  # noqa: PLC0415 - a review starts faster without
    from provisioner.cli.explain import COMMANDS as EXPLANATIONS  # noqa: PLC0415 - a review starts faster without
    from provisioner.cli.permissions import COMMANDS as PERMISSIONS  # noqa: PLC0415 - a review starts faster without
    from provisioner.cli.plugins import COMMANDS as PLUGINS  # noqa: PLC0415 - a review starts faster without

    return (*REVIEWS, *PERMISSIONS, *EXPLANATIONS, *CATALOGS, *PLUGINS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. Errors are one sentence on stderr, never a traceback.

    With `-o json` what could not be found out is said on stdout too, in the shape that the command always has.
    """
    given = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog="pratique", description="Show what a bundle would change in a cluster.")
    parser.add_argument("--version", action="version", version=f"pratique {metadata.version('pratique')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in find_commands(given):
        sub = commands.add_parser(
            command.name,
            help=command.help,
            description=command.help,
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add(sub)
        sub.set_defaults(run=command.run, unanswered=command.unanswered)
    options = parser.parse_args(given)
    try:
        return int(options.run(options))
    except PratiqueError as exc:
        _complain(options, exc.in_full, exc.code)
    except Usage as exc:
        _complain(options, str(exc), "")
    except BrokenPipeError:  # whoever read stdout is gone
        print(f"pratique {options.command}: the reader of standard output is gone", file=sys.stderr)
    except OSError as exc:
        _complain(options, f"{exc.strerror or 'failed'}: {exc.filename or ''}", "")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    return UNKNOWN


def _complain(options: argparse.Namespace, words: str, code: str) -> None:
    shown = visible(words, keep_newlines=True)
    print(f"pratique {options.command}: {shown}{f' [{code}]' if code else ''}", file=sys.stderr)
    if options.output == "json" and options.unanswered is not None:
        sys.stdout.write(json.dumps(options.unanswered(options, shown, code), indent=2, sort_keys=True) + "\n")
