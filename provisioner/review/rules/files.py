"""The files of the rules: found by name, read when they are first asked for, and kept."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from provisioner.review.rules.messages import HEADING, Messages, Template, messages_in
from provisioner.review.rules.text import SUFFIX, RuleText, parsed

_SHARED_FOLDER = "shared/"
_SHARED = re.compile(r"^\[[\w-]+\]\(shared/([\w-]+\.md)\)$", re.MULTILINE)


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
def messages_of(rule: str) -> Messages:
    """The sentences of the rule's findings, or of a file that rules share (`shared/folded`).

    Raises BadRuleFile where the file is damaged, LookupError without one.
    """
    if rule not in rule_ids() and not rule.startswith(_SHARED_FOLDER):
        raise LookupError(f"the rule {rule} has no file")
    _, _, section = _file(rule).partition(HEADING)
    own, shared = messages_in(rule, _SHARED.sub("", section)), dict[str, Template]()
    for name in _SHARED.findall(section):
        shared |= messages_of(f"{_SHARED_FOLDER}{name.removesuffix(SUFFIX)}").templates
    return Messages(rule, {**shared, **own.templates}, frozenset(shared), messages_of)


class Phrase(str):
    """A part of a sentence that stands in the file of a rule, as a value for the sentences of others; what reads it as
    data finds `name`, which text it is, and `params`, which it shows."""

    __slots__ = ("name", "params", "rule")
    rule: str
    name: str
    params: dict[str, Any]

    @classmethod
    def of(cls, rule: str, name: str, /, **params: Any) -> Phrase:
        made = cls(messages_of(rule).render(name, params))
        made.rule, made.name, made.params = rule, name, params
        return made


@cache
def _read(rule: str) -> RuleText:
    return parsed(f"{rule}{SUFFIX}", _file(rule))


def _file(rule: str) -> str:
    return files(__package__).joinpath(f"{rule}{SUFFIX}").read_text("utf-8")
