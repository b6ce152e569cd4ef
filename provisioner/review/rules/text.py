"""What the file of a rule says, and how strictly it is read.

A file has a front matter of YAML and three headings. Below each heading stand paragraphs with `code` and nothing else
of Markdown, because that is what reports and pages show. The templates of its messages stand last (see `messages`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import yaml

from provisioner.errors import BadRuleFile
from provisioner.review.rules.messages import HEADING
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
    head, body = _halves(name, text)
    body, _, _ = body.partition(HEADING)
    keys = _front_matter(name, head)
    rule = RuleText(
        _text(name, "id", keys["id"]),
        _text(name, "title", keys["title"]),
        _one_of(Section, name, "section", _text(name, "section", keys["section"])),
        _severities(name, keys["severities"]),
        _text(name, "source", keys["source"]),
        *_parts(name, body),
    )
    if f"{rule.id}{SUFFIX}" != name:
        raise BadRuleFile(f"{name}: the id is {rule.id}, which belongs in {rule.id}{SUFFIX}")
    return rule


def _halves(name: str, text: str) -> tuple[str, str]:
    head, fence, body = text.removeprefix(_FENCE).partition(f"\n{_FENCE}")
    if not text.startswith(_FENCE) or not fence:
        raise BadRuleFile(f"{name}: a front matter between two lines of --- is missing")
    return head, body


def _front_matter(name: str, head: str) -> dict[str, yaml.Node]:
    try:
        node = yaml.compose(head, Loader=yaml.SafeLoader)
    except yaml.YAMLError as exc:
        raise BadRuleFile(f"{name}: the front matter is not YAML: {exc}") from exc
    if not isinstance(node, yaml.MappingNode):
        raise BadRuleFile(f"{name}: the front matter is not a mapping of {', '.join(_KEYS)}")
    found = [(_text(name, "a key", key), value) for key, value in node.value]
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


def _text(name: str, what: str, node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or not node.value.strip() or "`" in node.value:
        raise BadRuleFile(f"{name}: {what} is not plain text")
    return str(node.value)


def _severities(name: str, node: yaml.Node) -> tuple[Severity, ...]:
    words = node.value if isinstance(node, yaml.SequenceNode) else []
    found = [_one_of(Severity, name, "severities", _text(name, "a severity", word)) for word in words]
    if not found or found != sorted(set(found), key=lambda it: it.rank):
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
