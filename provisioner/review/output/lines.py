"""The lines of objects and roles that a finding is about, and how lines look in a terminal. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from provisioner import rbac
from provisioner.alignment import Aligner
from provisioner.escaping import visible
from provisioner.json_values import items, mapping
from provisioner.review.base.difference import DiffLine, all_lines, diff_lines, mask_secret
from provisioner.review.base.messages import path_text
from provisioner.schema.verdicts import ITEMS, VALUES
from provisioner.sentences import and_more, number
from provisioner.values import SHAPES, Finding, JsonObject, Severity

MAX_LINES = 16
_CRD = "CustomResourceDefinition"
_KEYWORDS = {ITEMS: "items", VALUES: "additionalProperties"}
Path = tuple[str | int, ...]
_ANY = "*"
_MAX_SEARCHED = 2_000


def concerned_place(
    before: JsonObject | None, after: JsonObject | None, path: Path, version: str = ""
) -> tuple[Path | None, Path | None]:
    """How far a finding's path leads in both states, None in one that is missing: what its lines are made of."""
    first, last = (
        _reached(mask_secret(side), _in_schema(side, path, version))[0] if side is not None else None
        for side in (before, after)
    )
    if before is not None and first is not None and last is not None and len(last) >= len(first):
        first = _counterpart(before, after, last)
    return first, last


def _counterpart(before: Any, after: Any, path: Path) -> Path:
    """How far a path of the state after leads in the state before: an item of a list is where its counterpart is."""
    found: list[str | int] = []
    for part in path:
        at: str | int = part
        if isinstance(part, int):
            pairs = Aligner().pairs(items(before), items(after))
            at = next((pair.old for pair in pairs if pair.new == part), -1)
        known = _below(before, at) if at != -1 else []
        if not known:
            break
        found.append(known[0][0])
        before, after = known[0][1], _below(after, part)[0][1]
    return tuple(found)


def lines_at(
    before: JsonObject | None, after: JsonObject | None, reached: tuple[Path | None, Path | None]
) -> list[DiffLine]:
    """All lines of the places that a finding reaches, below a line that says where they are."""
    sides = zip((before, after), reached, strict=True)
    found = [_reached(mask_secret(side), at) if side is not None and at is not None else None for side, at in sides]
    place = max((one[0] for one in reversed(found) if one), key=len, default=())
    if not place:
        return []
    key = place[-1] if isinstance(place[-1], str) else "-"
    entries = [({key: one[1]} if len(one[0]) == len(place) else {}) if one else None for one in found]
    lines = diff_lines(*entries) or [DiffLine(" ", line.text) for line in diff_lines(None, entries[1])]
    return [DiffLine("@", path_text(place)), *lines]


def rule_lines(
    before: JsonObject | None, after: JsonObject | None, index: int, names: Collection[str]
) -> list[DiffLine]:
    """The rule of a role as it will be, below a line that says which; of a long one the lines that name one of `names`,
    and what says "*". None where the role has no such rule."""
    place = ("rules", index)
    found = [line for line in all_lines(before, after) if line.path[:2] == place and line.kind != "-"]
    if not found:
        return []
    lines = [replace(line, text=visible(line.text)) for line in found]
    return [DiffLine("@", path_text(place)), *telling_lines(lines, {*names, _ANY})]


def telling_lines(lines: Sequence[DiffLine], names: Collection[str] = ()) -> list[DiffLine]:
    """At most MAX_LINES of them, the first, or those that name one of `names` with the keys that they stand below.
    Where lines are left out, one says how many."""
    if len(lines) <= MAX_LINES:
        return list(lines)
    naming = [at for at, one in enumerate(lines[:_MAX_SEARCHED]) if not _words_in(one.text).isdisjoint(names)]
    kept: set[int] = set()
    for at in naming:
        wanted = kept | {at, *_above(lines, at)}
        if len(wanted) > MAX_LINES:
            break
        kept = wanted
    return list(_with_gaps(lines, kept or range(MAX_LINES)))


def _words_in(text: str) -> set[str]:
    """The key and the value of a line of YAML."""
    key, _, value = text.strip().removeprefix("- ").partition(": ")
    return {word.strip("\"' :") for word in (key, value) if word}


def _above(lines: Sequence[DiffLine], at: int) -> Iterator[int]:
    """The lines with the keys that a line stands below, innermost first."""
    depth = _depth(lines[at].text)
    for above in range(at - 1, -1, -1):
        if _depth(lines[above].text) < depth:
            depth = _depth(lines[above].text)
            yield above


def _depth(text: str) -> int:
    """How far a line stands to the right; an item of a list stands below the key of the list."""
    plain = text.lstrip(" ")
    return 2 * (len(text) - len(plain)) + plain.startswith("- ")


def _with_gaps(lines: Sequence[DiffLine], kept: Iterable[int]) -> Iterator[DiffLine]:
    """The kept lines; one that is left out alone is shown, which takes no more room than to say so."""
    last = -1
    for at in [*sorted(kept), len(lines)]:
        left_out, is_end = at - last - 1, at == len(lines)
        if left_out == 1:
            yield lines[at - 1]
        elif left_out:
            yield DiffLine("@", and_more(left_out, "lines") if is_end else number(left_out, "line"))
        if not is_end:
            yield lines[at]
        last = at


def located(side: JsonObject | None, path: Path, version: str = "") -> Path:
    """How far a finding's path leads in one state of its object, by keys and by numbers of items; () where nowhere."""
    value: Any = mask_secret(side) if side is not None else None
    concrete: Path = ()
    for part in _in_schema(side, path, version):
        found = _below(value, part)
        if not found:
            break
        concrete, value = (*concrete, found[0][0]), found[0][1]
    return concrete


def _in_schema(side: JsonObject | None, path: Path, version: str) -> Path:
    """A path of an object as the path of its schema in the CRD."""
    body = side or {}
    versions = items(mapping(body.get("spec")).get("versions"))
    at = next((at for at, one in enumerate(versions) if mapping(one).get("name") == version), None)
    if body.get("kind") != _CRD or at is None or path[:2] == ("spec", "versions"):
        return path
    found: list[str | int] = ["spec", "versions", at, "schema", "openAPIV3Schema"]
    for part in path:
        found += [_KEYWORDS[part]] if part in _KEYWORDS else ["properties", part]
    return tuple(found)


def _reached(side: JsonObject, path: Path) -> tuple[Path, Any]:
    """How far a path leads, and what is there. An item of a list is named by its place or by its name."""
    value: Any = side
    for length, part in enumerate(path):
        found = _below(value, part)
        if not found:
            return path[:length], value
        value = found[0][1]
    return path, value


def _below(value: object, part: str | int) -> Sequence[tuple[str | int, Any]]:
    """What `part` names, with its key or number; [] where there is none."""
    if isinstance(value, Mapping):
        return [(part, value[part])] if part in value else []
    if isinstance(part, int):
        return [(part, item) for item in items(value)[part : part + 1]]
    return [(at, one) for at, one in enumerate(items(value)) if mapping(one).get("name") == part][:1]


# So many rules of roles are shown with a finding; its evidence lists all of them.
MAX_RULES = 3
_NAMING = ("verbs", "resources", "resourceNames", "nonResourceURLs")
_MAX_NAME = 200


def rules_behind(evidence: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The role and the number of each rule by which the rights of a finding come, at most MAX_RULES."""
    ways = evidence.get("by")
    found = (
        (str(way["origin"]), int(way["rule"]))
        for way in (ways if isinstance(ways, list | tuple) else ())
        if isinstance(way, Mapping) and "origin" in way and "rule" in way
    )
    return list(dict.fromkeys(found))[:MAX_RULES]


def names_in(rule: str, evidence: Mapping[str, Any]) -> frozenset[str]:
    """What the lines of a finding have to name: of a risk what makes it one, else the words of its evidence."""
    return rbac.names_of_risk(rule) or frozenset(_evidence_texts(evidence))


def _evidence_texts(evidence: Mapping[str, Any]) -> Iterator[str]:
    for name, value in evidence.items():
        if isinstance(value, str):
            yield value[:_MAX_NAME]
        elif isinstance(value, list | tuple):
            yield from (word[:_MAX_NAME] for word in value if isinstance(word, str))
            gained = (one for one in value if name == "added" and isinstance(one, Mapping))
            yield from (str(word) for one in gained for part in _NAMING for word in one.get(part) or ())


WIDTH = 80
MAX_EXAMPLE = 200
MAX_REPEATED = 20
Paint = Callable[[str, str], str]
COLOURS = {
    Severity.CRITICAL: "1;31",
    Severity.BREAKING: "31",
    Severity.UNKNOWN: "35",
    Severity.DANGEROUS: "33",
    Severity.NOTABLE: "36",
    Severity.SAFE: "2",
}


def plain(text: str, _: str) -> str:
    return text


def painted(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def severity_mark(severity: Severity, paint: Paint) -> str:
    """What a line about a finding begins with."""
    return paint(f"  {SHAPES[severity]} {severity}", COLOURS[severity])


def wrapped(text: str, indent: str, further: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if further is None else further,
        break_long_words=False,
        break_on_hyphens=False,
    )


def example(finding: Finding) -> str:
    """The value that a schema no longer takes, "" where a finding has none."""
    if "counterexample" not in finding.evidence:
        return ""
    return f"no longer accepted: {visible(_short(finding.evidence['counterexample']))}"


def _short(value: object) -> str:
    if isinstance(value, str) and len(value) > MAX_REPEATED and len(set(value)) == 1:
        return f"{json.dumps(value[0], ensure_ascii=False)} {len(value):,} times in a row"
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= MAX_EXAMPLE else f"{text[:MAX_EXAMPLE]}…"
