"""`pratique explain`: what stands behind the rules that reports name."""

from __future__ import annotations

import argparse
import json
import sys

from provisioner.cli.arguments import ReviewCommand, Usage
from provisioner.cli.review import OK
from provisioner.review.rules import rule_ids, rule_text
from provisioner.review.rules.explanations import as_text, to_record

_EPILOG = """\
exit status
  0  every rule is known
  2  a rule is unknown
"""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "rules", metavar="RULE", nargs="*", help="a rule id such as RB-11, or a family such as RB; default: all rules"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")


def _run(options: argparse.Namespace) -> int:
    sys.stdout.write(explained(options))
    return OK


def explained(options: argparse.Namespace) -> str:
    """What is printed. Raises Usage where a word names no rule."""
    by_name = {rule.upper(): rule for rule in rule_ids()}
    wanted: dict[str, list[str]] = {}
    for word in options.rules:
        # One rule by its id, or all of a family.
        exact = word.upper()
        family = [rule for rule in rule_ids() if rule.startswith(f"{exact}-")]
        wanted[word] = [by_name[exact]] if exact in by_name else family
    unknown = [word for word, ids in wanted.items() if not ids]
    if unknown:
        raise Usage(f"{unknown[0]}: no rule has this id; `explain` without arguments lists all rules")
    chosen = {rule for ids in wanted.values() for rule in ids} if wanted else set(rule_ids())
    rules = {rule: words for rule in sorted(chosen) if (words := rule_text(rule)) is not None}
    if options.output == "json":
        return json.dumps(to_record(rules), indent=2, sort_keys=True) + "\n"
    return as_text(rules)


COMMANDS: tuple[ReviewCommand, ...] = (
    ReviewCommand(
        "explain", "explain rules: what each means, why it matters, what to do, and its sources", _add, _run, _EPILOG
    ),
)
