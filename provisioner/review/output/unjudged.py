"""What no rule judges, in few lines: each field with what was and what will be, and new objects by their kind."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from provisioner.review.base.places import UNJUDGED, places_of, unjudged_fields
from provisioner.review.base.statements import Statement, count
from provisioner.review.rules import messages_of
from provisioner.sentences import and_more, number, some
from provisioner.values import Action, Finding

MAX_FIELDS = 3
MAX_KINDS = 3
MAX_WORDS = 100
MAX_LINE = 60
_METADATA = ".metadata."


def few_words(told: Sequence[Statement]) -> tuple[list[tuple[str, list[str]]], int]:
    """Objects, each with what is said of them, for a short report, and of how many places it says only that there are
    more.

    Fields of what stays come first. Labels and annotations are told where nothing else changes, else counted.
    """
    new = [one for one in told if one.first.evidence.get("action") == Action.CREATE]
    changed = sorted((one for one in told if one not in new), key=_is_of_metadata)
    fields = [one for one in changed if not _is_of_metadata(one)] or changed
    kept = fields[:MAX_FIELDS]
    rest = changed[len(kept) :]
    objects: dict[str, list[str]] = {}
    for one in kept:
        objects.setdefault(_names(one), []).append(_words(one))
    found = list(objects.items())
    if rest:
        found.append((f"{number(len(rest), 'more field')} of {_objects(rest)}", []))
    if new:
        told_of_new = [finding for one in new for finding in one.findings]
        found.append((f"{fields_in_words(told_of_new)} that are new", kinds_and_fields(told_of_new, MAX_KINDS)))
    return found, sum(count(one.places) for one in (*rest, *new))


def _is_of_metadata(one: Statement) -> bool:
    return all(_METADATA in f".{field}" for field in one.first.evidence.get("fields") or ())


def _names(one: Statement) -> str:
    return some(list(dict.fromkeys(place.of for place in one.places)), 1)


def _words(one: Statement) -> str:
    """Cut, so that one field of many values leaves room for others; of a text of many lines those that differ."""
    evidence = one.first.evidence
    words = messages_of(UNJUDGED).render("changed.few", evidence) if one.first.variant == "changed" else one.words
    changes = evidence.get("changes") or ()
    texts = [(_text_of(change.get("before")), _text_of(change.get("after"))) for change in changes]
    if len(texts) == 1 and any("\n" in side for side in texts[0]):
        return f"{evidence.get('field')}: {_differing(*texts[0])}"
    return words if len(words) <= MAX_WORDS else f"{words[:MAX_WORDS].rstrip('…')}…"


def _text_of(value: object) -> str:
    """A text as the object holds it: in evidence one of several lines stands as JSON."""
    try:
        found = json.loads(str(value))
    except ValueError:
        return str(value)
    return found if isinstance(found, str) else str(value)


def _differing(before: str, after: str) -> str:
    """The first line that goes and the first that comes, cut, and how many more."""
    old, new = before.splitlines(), after.splitlines()
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    lines = [[f"- {one.strip()}" for one in old if gone[one]], [f"+ {one.strip()}" for one in new if come[one]]]
    told = [one if len(one) <= MAX_LINE else f"{one[:MAX_LINE]}…" for side in lines for one in side[:1]]
    if not told:
        return "its lines stand in another order"
    rest = sum(map(len, lines)) - len(told)
    return " ".join([*told, *([f"({number(rest, 'more line')})"] if rest else [])])


def _objects(statements: Sequence[Statement]) -> str:
    return number(len({place.of for one in statements for place in one.places}), "object")


def fields_in_words(findings: Iterable[Finding]) -> str:
    """`32 fields of 15 objects`, of findings of what no rule judges."""
    everything = list(findings)
    fields = sum(1 for one in everything for _ in unjudged_fields(one.rule, one.evidence))
    objects = len({place.of for one in everything for place in places_of(one)})
    return f"{number(fields, 'field')} of {number(objects, 'object')}"


def kinds_and_fields(findings: Iterable[Finding], most: int) -> list[str]:
    """Which fields of which kinds these are, `most` of the kinds and of the fields of each: `Service: spec.ports`."""
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for one in findings:
        kinds[one.ref.kind if one.ref else ""].update(unjudged_fields(one.rule, one.evidence))
    ordered = sorted(kinds.items(), key=lambda it: -it[1].total())
    told = [f"{kind}: {some([name for name, _ in fields.most_common()], most)}" for kind, fields in ordered[:most]]
    return [*told, *([and_more(len(ordered) - most, "kinds")] if len(ordered) > most else [])]
