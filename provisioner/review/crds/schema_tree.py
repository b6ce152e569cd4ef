"""The schema of a changed CRD as a tree in which only what changes is opened. Pure; bounded however large it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from provisioner.review.base.facts import said
from provisioner.review.base.messages import Path, places_of
from provisioner.review.base.record import Mark
from provisioner.schema.definition.crd import Crd, CrdVersion
from provisioner.schema.diff.rules import DOCS
from provisioner.schema.fields import DEEPEST, is_same, is_too_deep
from provisioner.schema.verdicts import ITEMS, VALUES
from provisioner.values import Action, Finding, GroupKind, JsonObject, PlannedAction, Report, Section, Severity

# Branches drawn for one version, the worst first, and how deep they stand inside of each other.
MAX_BRANCHES = 300
MAX_DEPTH = 12
MAX_NAMES = 12
MAX_DIFFERENCES = 8
MAX_WORDS = 80
_CHILDREN = frozenset({"properties", "items", "additionalProperties"})
# Their paths are places in the objects of a version; those of the others are places in the CRD itself.
_IN_SCHEMAS = ("SCH-", "SRV-")
_HARMLESS = len(Severity)
_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


@dataclass(frozen=True, slots=True)
class KeywordDifference:
    """One keyword of a field as it was and as it is, as short JSON, "" where it is not there."""

    keyword: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Branch:
    """One field that changes, or that leads to one.

    `fields` is how many fields stand in it, `same` how many of them below it are as before (the first `same_names`
    stand directly in it), `left_out` how many branches below it are not drawn.
    """

    name: str
    path: Path
    mark: Mark
    kind: str
    fields: int
    differences: tuple[KeywordDifference, ...] = ()
    findings: tuple[Finding, ...] = ()
    branches: tuple[Branch, ...] = ()
    same: int = 0
    same_names: tuple[str, ...] = ()
    has_more_names: bool = False
    left_out: int = 0

    @property
    def worst(self) -> int:
        """The rank of the worst finding here or below."""
        here = min((finding.severity.rank for finding in self.findings), default=_HARMLESS)
        return min([here, *(branch.worst for branch in self.branches)])


@dataclass(frozen=True, slots=True)
class SchemaTree:
    """One version of a CRD. `about` are the findings on it that name no field; `root` is None where no field changes.

    `drawn` branches are those with the worst findings, `left_out` says how many more there are.
    """

    version: str
    mark: Mark
    fields: int
    root: Branch | None = None
    about: tuple[Finding, ...] = ()
    drawn: int = 0
    left_out: int = 0

    @property
    def totals(self) -> list[tuple[Severity, int]]:
        """How many findings there are of each severity, the worst first, whether drawn or not."""
        drawn = [finding for branch in walk(self.root) for finding in branch.findings]
        counted = Counter(finding.severity for finding in (*self.about, *drawn))
        return [(severity, counted[severity]) for severity in Severity if counted[severity]]


@dataclass(frozen=True, slots=True)
class SchemaPicture:
    """A changed CRD: findings on the whole of it, and a tree for each version. `problem` says why there is no tree."""

    about: tuple[Finding, ...]
    trees: tuple[SchemaTree, ...]
    problem: str = ""


@dataclass(frozen=True)
class _Node:
    """A schema without its documentation: what it says itself, and its fields."""

    own: Mapping[str, Any]
    children: Mapping[str, _Node]

    @property
    def kind(self) -> str:
        return str(self.own.get("type") or ("integer or string" if "x-kubernetes-int-or-string" in self.own else "any"))

    def size(self) -> int:
        return 1 + sum(child.size() for child in self.children.values())


_Remark = tuple[Path, Finding]  # a finding at one of its places


@dataclass(slots=True)
class _Remarks:
    """Findings by the place where they stand; `on_the_way` are the places that lead to one."""

    at: dict[Path, list[Finding]] = field(default_factory=dict)
    on_the_way: set[Path] = field(default_factory=set)

    def put(self, path: Path, finding: Finding) -> None:
        self.at.setdefault(path, []).append(finding)
        self.on_the_way.update(path[:length] for length in range(len(path) + 1))


def crds_of(report: Report) -> list[PlannedAction]:
    """The CRDs that a report plans to do something with, the one with the worst finding first."""
    staying = (Action.NONE, Action.ORPHAN)
    crds = [
        planned for planned in report.plan.actions if planned.ref.group_kind == _CRD and planned.action not in staying
    ]
    ranks = {
        finding.ref.identity: finding.severity.rank
        for finding in reversed(report.findings)
        if finding.ref and finding.ref.kind == _CRD.kind
    }
    return sorted(crds, key=lambda planned: (ranks.get(planned.ref.identity, _HARMLESS), planned.ref.name))


def picture_of(report: Report, planned: PlannedAction) -> SchemaPicture:
    """The picture of one CRD of a report."""
    name = said(planned.ref)
    own = report.in_section(Section.CRDS)
    about = [finding for finding in own if any(place.of == name for place in places_of(finding))]
    return schema_picture(planned.before, planned.after, about, name)


def schema_picture(
    old: JsonObject | None, new: JsonObject | None, findings: Iterable[Finding], name: str = ""
) -> SchemaPicture:
    """The versions of a CRD on either side, in the order of the new one; `findings` are those about it.

    Where they are about other CRDs, too, `name` is what messages call this one.

    Descriptions, titles and examples count as the same: nobody is refused for them.
    """
    told = list(findings)
    if is_too_deep(old) or is_too_deep(new):
        return SchemaPicture(tuple(told), (), f"It is nested deeper than {DEEPEST} levels and cannot be drawn.")
    before, after = (Crd(side or {}) for side in (old, new))
    by_version: dict[str, list[_Remark]] = {version.name: [] for side in (after, before) for version in side.versions}
    about: list[Finding] = []
    for finding in told:
        for place in places_of(finding):
            if place.version not in by_version:
                about += [finding] if finding not in about else []
            elif not name or place.of == name:
                by_version[place.version].append((place.path, finding))
    trees = [_draw_tree(name, before.version(name), after.version(name), found) for name, found in by_version.items()]
    return SchemaPicture(tuple(about), tuple(trees))


def walk(branch: Branch | None) -> Iterator[Branch]:
    """A branch and all below it, each before what it holds."""
    if branch is not None:
        yield branch
        for inner in branch.branches:
            yield from walk(inner)


def _draw_tree(name: str, old: CrdVersion | None, new: CrdVersion | None, findings: Sequence[_Remark]) -> SchemaTree:
    mark = Mark.of(was=old is not None, is_=new is not None)
    before, after = (_read_node(side.schema) if side and side.schema is not None else None for side in (old, new))
    fields = max(side.size() if side else 0 for side in (before, after))
    # Each finding stands at the deepest field that its path leads to; those without such a path are about the whole.
    remarks, about = _Remarks(), list[Finding]()
    for path, finding in findings:
        if finding.rule.startswith(_IN_SCHEMAS) and (before or after):
            remarks.put(_find_nearest(path, before, after), finding)
        else:
            about.append(finding)
    if mark is not Mark.SAME or (before == after and not remarks.at):
        return SchemaTree(
            name, mark, fields, about=(*about, *(remark for found in remarks.at.values() for remark in found))
        )
    root = _grow_branch("", (), before, after, remarks)
    # The branches to draw: those with the worst findings, each with all that lead to it.
    ranked = sorted((branch.worst, at, branch.path) for at, branch in enumerate(walk(root)))
    kept = {path for _, _, path in ranked[:MAX_BRANCHES]}
    drawn = _flatten_branch(_prune_branch(root, kept), 0)
    left_out = sum(1 for _ in walk(root)) - len(kept)
    return SchemaTree(name, Mark.CHANGED, fields, drawn, tuple(about), len(kept), left_out)


def _read_node(schema: Mapping[str, Any]) -> _Node:
    children = {}
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        children.update(
            {str(name): _read_node(inner) for name, inner in properties.items() if isinstance(inner, Mapping)}
        )
    for keyword, name in (("items", ITEMS), ("additionalProperties", VALUES)):
        inner = schema.get(keyword)
        if isinstance(inner, Mapping):
            children[name] = _read_node(inner)
    left = {key for key in _CHILDREN if not isinstance(schema.get(key), Mapping)}
    own = {key: value for key, value in schema.items() if key not in DOCS and (key not in _CHILDREN or key in left)}
    return _Node(own, children)


def _find_nearest(path: Path, old: _Node | None, new: _Node | None) -> Path:
    for length, part in enumerate(path):
        old, new = (side.children.get(str(part)) if side else None for side in (old, new))
        if old is None and new is None:
            return path[:length]
    return path


def _grow_branch(name: str, path: Path, old: _Node | None, new: _Node | None, remarks: _Remarks) -> Branch:
    same, same_names, branches = 0, [], []
    is_one_sided = old is None or new is None
    for child in sorted({*(old.children if old else ()), *(new.children if new else ())}):
        before, after = (side.children.get(child) if side else None for side in (old, new))
        inner = (*path, child)
        if inner not in remarks.on_the_way and (is_one_sided or before == after):
            same += (after or before or _EMPTY).size()
            same_names.append(child)
        else:
            branches.append(_grow_branch(child, inner, before, after, remarks))
    if old is None or new is None:
        mark = Mark.of(was=old is not None, is_=new is not None)
    else:
        mark = Mark.SAME if is_same(old.own, new.own) else Mark.CHANGED
    kind = " → ".join(dict.fromkeys(side.kind for side in (old, new) if side))
    return Branch(
        name,
        path,
        mark,
        kind,
        (new or old or _EMPTY).size(),
        differences=_compare_keywords(old, new),
        findings=tuple(remarks.at.get(path, ())),
        branches=tuple(branches),
        same=same,
        same_names=tuple(same_names[:MAX_NAMES]),
        has_more_names=len(same_names) > MAX_NAMES,
    )


_EMPTY = _Node({}, {})


def _compare_keywords(old: _Node | None, new: _Node | None) -> tuple[KeywordDifference, ...]:
    """Return what the field says of itself now and said before; of a new or a gone one nothing: it is all of it."""
    if old is None or new is None:
        return ()
    changed = [key for key in sorted({*old.own, *new.own}) if not is_same(old.own.get(key), new.own.get(key))]
    found = []
    for key in changed[:MAX_DIFFERENCES]:
        before, after = old.own.get(key), new.own.get(key)
        if isinstance(before, list) and isinstance(after, list):
            # Of long lists, such as those of required fields, only what goes and what comes.
            gone, come = [item for item in before if item not in after], [item for item in after if item not in before]
            if gone or come:
                before, after = gone or None, come or None
        sides = [
            json.dumps(side, ensure_ascii=False, default=str) if side is not None else "" for side in (before, after)
        ]
        found.append(
            KeywordDifference(key, *(text if len(text) <= MAX_WORDS else f"{text[: MAX_WORDS - 1]}…" for text in sides))
        )
    return tuple(found)


def _prune_branch(branch: Branch, kept: set[Path]) -> Branch:
    drawn = tuple(_prune_branch(inner, kept) for inner in branch.branches if inner.path in kept)
    left_out = sum(1 for inner in branch.branches if inner.path not in kept for _ in walk(inner))
    return replace(branch, branches=drawn, left_out=left_out)


def _flatten_branch(branch: Branch, depth: int) -> Branch:
    """A field that only leads to one other is drawn with it as one; what is deeper than MAX_DEPTH stands in a row."""
    if depth < MAX_DEPTH:
        drawn = []
        for child in branch.branches:
            inner = child
            while len(inner.branches) == 1 and not _says_something(inner):
                only = inner.branches[0]
                inner = replace(only, name=_join_names(inner.name, only.name))
            drawn.append(_flatten_branch(inner, depth + 1))
        return replace(branch, branches=tuple(drawn))
    deeper = [inner for inner in walk(branch) if inner is not branch and _says_something(inner)]
    names = (reduce(_join_names, map(str, inner.path[len(branch.path) :]), "") for inner in deeper)
    row = (replace(inner, name=name, branches=()) for inner, name in zip(deeper, names, strict=True))
    return replace(branch, branches=tuple(row))


def _says_something(branch: Branch) -> bool:
    return bool(branch.findings or branch.differences or branch.same or branch.left_out) or branch.mark is not Mark.SAME


def _join_names(name: str, part: str) -> str:
    return f"{name}{part}" if part in (ITEMS, VALUES) or not name else f"{name}.{part}"
