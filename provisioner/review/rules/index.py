"""docs/rules/README.md: all rules by section, each with its severities and a link to its file.

`python -m provisioner.review.rules.index docs/rules/README.md` writes it; with `--check` it only says whether the page
is as it would be written (exit status 1 if not).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from provisioner.review.rules import rule_ids, rule_text
from provisioner.values import Section, Severity

# From docs/rules, where the page lies, to the files.
_FILES = "../../provisioner/review/rules"
_INTRODUCTION = """\
<!-- Written by `make docs` from the files of the rules. Do not edit. -->
# Rules

A report consists of findings, and each finding belongs to one of these rules. `pratique explain RB-11` shows a rule in
the terminal, and `pratique explain` shows all of them. A rule can have findings of several severities, because the
severity depends on where and how much. Select a rule to read what it means, why it matters, and what to do.

The severities, from the worst to the most harmless: {severities}. A finding of severity unknown says that Pratique
could not find out.
"""


def page() -> str:
    """The whole page, as Markdown."""
    rules = [words for rule in rule_ids() if (words := rule_text(rule)) is not None]
    lines = [_INTRODUCTION.format(severities=", ".join(Severity))]
    for section in Section:
        lines.append(f"## {section.heading}\n\n| rule | severity | title |\n|---|---|---|")
        lines += [
            f"| [{rule.id}]({_FILES}/{rule.id}.md) | {', '.join(rule.severities)} | {rule.title} |"
            for rule in rules
            if rule.section is section
        ]
        lines.append("")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m provisioner.review.rules.index", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if the page is not current")
    options = parser.parse_args(arguments)
    if not options.check:
        options.file.write_text(page(), "utf-8")
    elif not options.file.is_file() or options.file.read_text("utf-8") != page():
        sys.stderr.write(f"{options.file} is not current. Run `make docs` and commit the result.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
