"""The files of the rules: found by name, read when they are first asked for, and kept."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from provisioner.review.rules.text import SUFFIX, RuleText, parsed


@cache
def rule_ids() -> tuple[str, ...]:
    """The ids of all rules that have a file, sorted."""
    names = (one.name for one in files(__package__).iterdir() if one.is_file())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)))


def rule_text(rule: str) -> RuleText | None:
    """What the rule of this id means; None for a rule of another package's check.

    Raises BadRuleFile where its file is damaged.
    """
    return _read(rule) if rule in rule_ids() else None


@cache
def _read(rule: str) -> RuleText:
    name = f"{rule}{SUFFIX}"
    return parsed(name, files(__package__).joinpath(name).read_text("utf-8"))
