"""The files of the rules: found by name, read when they are first asked for, and kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import yaml

from provisioner.errors import BadRuleFile
from provisioner.rbac import HELD, Risk
from provisioner.review.rules.messages import HEADING, Messages, Template, messages_in
from provisioner.values import Section, Severity

SUFFIX = ".md"
_FENCE = "---\n"
_HEADING = "## "
_HEADINGS = ("What it means", "Why it matters", "What to do")
_KEYS = ("id", "title", "section", "severities", "source")
_CODE = re.compile(r"`([^`\n]+)`")
# What Markdown would show in another way than the pages do: the start of a line, and marks inside of it.
_BLOCK = re.compile(r"^(?:[ \t]+\S|#|[-+*] |\d+[.)] |\||[-=~]{3}).*", re.MULTILINE)
_MARK = re.compile(r"[`*_<>\[\]\\]")
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class RuleText:
    """One rule in words. `severities` are those that its findings can have, the worst first.

    `means`, `matters` and `do` are paragraphs, separated by blank lines, with code in backticks as in the messages of
    findings; `title` and `source`, which names where it is written, are plain text.
    """

    id: str
    title: str
    section: Section
    severities: tuple[Severity, ...]
    source: str
    means: str
    matters: str
    do: str


def parsed(name: str, text: str) -> RuleText:
    """The rule of the file `name` with the content `text`.

    Raises BadRuleFile, which names the file, for anything missing, unknown, double or contradictory.
    """
    head, fence, body = text.removeprefix(_FENCE).partition(f"\n{_FENCE}")
    if not text.startswith(_FENCE) or not fence:
        raise BadRuleFile(f"{name}: a front matter between two lines of --- is missing")
    body, _, _ = body.partition(HEADING)
    keys = _front_matter(name, head)
    rule = RuleText(
        _plain_text(name, "id", keys["id"]),
        _plain_text(name, "title", keys["title"]),
        _one_of(Section, name, "section", _plain_text(name, "section", keys["section"])),
        _severities(name, keys["severities"]),
        _plain_text(name, "source", keys["source"]),
        *_parts(name, body),
    )
    if f"{rule.id}{SUFFIX}" != name:
        raise BadRuleFile(f"{name}: the id is {rule.id}, which belongs in {rule.id}{SUFFIX}")
    return rule


def _front_matter(name: str, head: str) -> dict[str, yaml.Node]:
    try:
        node = yaml.compose(head, Loader=yaml.SafeLoader)
    except yaml.YAMLError as exc:
        raise BadRuleFile(f"{name}: the front matter is not YAML: {exc}") from exc
    if not isinstance(node, yaml.MappingNode):
        raise BadRuleFile(f"{name}: the front matter is not a mapping of {', '.join(_KEYS)}")
    found = [(_plain_text(name, "a key", key), value) for key, value in node.value]
    _complete(name, "key", [key for key, _ in found], _KEYS)
    return dict(found)


def _complete(name: str, what: str, found: Sequence[str], wanted: Sequence[str]) -> None:
    """Whether each of `wanted` was found once, and nothing else."""
    for word in wanted:
        if found.count(word) != 1:
            problem = "stands twice" if word in found else "is missing"
            raise BadRuleFile(f"{name}: the {what} {word} {problem}")
    for word in found:
        if word not in wanted:
            raise BadRuleFile(f"{name}: the {what} {word} is unknown")


def _plain_text(name: str, what: str, node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or not node.value.strip() or "`" in node.value:
        raise BadRuleFile(f"{name}: {what} is not plain text")
    return str(node.value)


def _severities(name: str, node: yaml.Node) -> tuple[Severity, ...]:
    words = node.value if isinstance(node, yaml.SequenceNode) else []
    found = [_one_of(Severity, name, "severities", _plain_text(name, "a severity", word)) for word in words]
    if not found or found != sorted(set(found), key=lambda severity: severity.rank):
        raise BadRuleFile(f"{name}: severities is not a list of severities, each once, the worst first")
    return tuple(found)


def _one_of(known: type[_Word], name: str, key: str, word: str) -> _Word:
    if word not in list(known):
        raise BadRuleFile(f"{name}: {key}: {word} is none of {', '.join(known)}")
    return known(word)


def _parts(name: str, body: str) -> Iterable[str]:
    before, *sections = f"\n{body}".split(f"\n{_HEADING}")
    if before.strip():
        raise BadRuleFile(f"{name}: text stands before the first heading")
    found = [section.partition("\n")[::2] for section in sections]
    _complete(name, "heading", [heading.strip() for heading, _ in found], _HEADINGS)
    if [heading.strip() for heading, _ in found] != list(_HEADINGS):
        raise BadRuleFile(f"{name}: the headings are not in the order {', '.join(_HEADINGS)}")
    return [_prose(name, heading, text) for heading, text in found]


def _prose(name: str, heading: str, text: str) -> str:
    if not text.strip():
        raise BadRuleFile(f"{name}: nothing stands below {heading}")
    paragraphs = [" ".join(block.split()) for block in text.strip().split("\n\n")]
    found = _BLOCK.search(text.strip("\n")) or _MARK.search(_CODE.sub("code", "\n".join(paragraphs)))
    if found:
        raise BadRuleFile(f"{name}: {found[0]!r} below {heading}: only paragraphs and `code` are shown")
    return "\n\n".join(paragraphs)


_SHARED_FOLDER = "shared/"
_SHARED = re.compile(r"^\[[\w-]+\]\(shared/([\w-]+\.md)\)$", re.MULTILINE)


@cache
def rule_ids() -> tuple[str, ...]:
    """The ids of all rules that have a file, sorted."""
    names = (file.name for file in files(__package__).iterdir() if file.is_file())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)))


def rule_text(rule: str) -> RuleText | None:
    """What the rule of this id means; None for a rule of another package's check.

    Raises BadRuleFile where its file is damaged.
    """
    return _load_rule(rule) if rule in rule_ids() else None


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
def _load_rule(rule: str) -> RuleText:
    return parsed(f"{rule}{SUFFIX}", _file(rule))


def _file(rule: str) -> str:
    return files(__package__).joinpath(f"{rule}{SUFFIX}").read_text("utf-8")


def power_of(risk: Risk, place: str = "") -> Phrase:
    """What somebody can do or holds, in the words of the rule, with where that is: the scope, or as `place` says."""
    if risk.what == HELD:
        return Phrase.of(risk.id, "held.role", **dict(risk.details))
    place = place or ("bare" if risk.place is None else "namespace" if risk.place else "cluster")
    return Phrase.of(risk.id, f"power.{place}", what=risk.what, scope=risk.place, **dict(risk.details))


def sentence_of(risk: Risk) -> Phrase:
    """A risk as a sentence of its account."""
    return power_of(risk) if risk.what == HELD else Phrase.of(risk.id, "power.can", power=power_of(risk))
