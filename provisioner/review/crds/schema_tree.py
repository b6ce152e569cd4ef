"""The schema of a changed CRD as a tree in which only what changes is opened. Pure; bounded however large it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
        return _totals([*self.about, *(finding for branch in walk(self.root) for finding in branch.findings)])


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
    return sorted(crds, key=lambda it: (ranks.get(it.ref.identity, _HARMLESS), it.ref.name))


def picture_of(report: Report, planned: PlannedAction) -> SchemaPicture:
    """The picture of one CRD of a report."""
    name = said(planned.ref)
    about = [one for one in report.in_section(Section.CRDS) if any(place.of == name for place in places_of(one))]
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
    for one in told:
        for place in places_of(one):
            if place.version not in by_version:
                about += [one] if one not in about else []
            elif not name or place.of == name:
                by_version[place.version].append((place.path, one))
    trees = [_tree(name, before.version(name), after.version(name), found) for name, found in by_version.items()]
    return SchemaPicture(tuple(about), tuple(trees))


def walk(branch: Branch | None) -> Iterator[Branch]:
    """A branch and all below it, each before what it holds."""
    if branch is not None:
        yield branch
        for one in branch.branches:
            yield from walk(one)


def _tree(name: str, old: CrdVersion | None, new: CrdVersion | None, findings: Sequence[_Remark]) -> SchemaTree:
    mark = Mark.of(was=old is not None, is_=new is not None)
    before, after = (_node(side.schema) if side and side.schema is not None else None for side in (old, new))
    fields = max(side.size() if side else 0 for side in (before, after))
    remarks, about = _placed(findings, before, after)
    if mark is not Mark.SAME or (before == after and not remarks.at):
        return SchemaTree(name, mark, fields, about=(*about, *(one for found in remarks.at.values() for one in found)))
    root = _branch("", (), before, after, remarks)
    kept = _kept(root)
    drawn = _flattened(_pruned(root, kept), 0)
    left_out = sum(1 for _ in walk(root)) - len(kept)
    return SchemaTree(name, Mark.CHANGED, fields, drawn, tuple(about), len(kept), left_out)


def _node(schema: Mapping[str, Any]) -> _Node:
    children = {}
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        children.update({str(name): _node(one) for name, one in properties.items() if isinstance(one, Mapping)})
    for keyword, name in (("items", ITEMS), ("additionalProperties", VALUES)):
        inner = schema.get(keyword)
        if isinstance(inner, Mapping):
            children[name] = _node(inner)
    left = {key for key in _CHILDREN if not isinstance(schema.get(key), Mapping)}
    own = {key: value for key, value in schema.items() if key not in DOCS and (key not in _CHILDREN or key in left)}
    return _Node(own, children)


def _placed(findings: Iterable[_Remark], old: _Node | None, new: _Node | None) -> tuple[_Remarks, list[Finding]]:
    """Each finding at the deepest field that its path leads to; those without such a path in a list."""
    remarks, about = _Remarks(), []
    for path, one in findings:
        if one.rule.startswith(_IN_SCHEMAS) and (old or new):
            remarks.put(_nearest(path, old, new), one)
        else:
            about.append(one)
    return remarks, about


def _nearest(path: Path, old: _Node | None, new: _Node | None) -> Path:
    for length, part in enumerate(path):
        old, new = (side.children.get(str(part)) if side else None for side in (old, new))
        if old is None and new is None:
            return path[:length]
    return path


def _branch(name: str, path: Path, old: _Node | None, new: _Node | None, remarks: _Remarks) -> Branch:
    same, same_names, branches = 0, [], []
    is_one_sided = old is None or new is None
    for child in sorted({*(old.children if old else ()), *(new.children if new else ())}):
        before, after = (side.children.get(child) if side else None for side in (old, new))
        inner = (*path, child)
        if inner not in remarks.on_the_way and (is_one_sided or before == after):
            same += (after or before or _EMPTY).size()
            same_names.append(child)
        else:
            branches.append(_branch(child, inner, before, after, remarks))
    drawn = Branch(name, path, _mark(old, new), _kind(old, new), (new or old or _EMPTY).size())
    return replace(
        drawn,
        differences=_differences(old, new),
        findings=tuple(remarks.at.get(path, ())),
        branches=tuple(branches),
        same=same,
        same_names=tuple(same_names[:MAX_NAMES]),
        has_more_names=len(same_names) > MAX_NAMES,
    )


_EMPTY = _Node({}, {})


def _mark(old: _Node | None, new: _Node | None) -> Mark:
    if old is None or new is None:
        return Mark.of(was=old is not None, is_=new is not None)
    return Mark.SAME if is_same(old.own, new.own) else Mark.CHANGED


def _kind(old: _Node | None, new: _Node | None) -> str:
    kinds = dict.fromkeys(side.kind for side in (old, new) if side)
    return " → ".join(kinds)


def _differences(old: _Node | None, new: _Node | None) -> tuple[KeywordDifference, ...]:
    """What the field says of itself now and said before; of a new or a gone one nothing: it is all of it."""
    if old is None or new is None:
        return ()
    changed = [key for key in sorted({*old.own, *new.own}) if not is_same(old.own.get(key), new.own.get(key))]
    return tuple(_difference(key, old.own, new.own) for key in changed[:MAX_DIFFERENCES])


def _difference(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> KeywordDifference:
    before, after = old.get(key), new.get(key)
    if isinstance(before, list) and isinstance(after, list):
        # Of long lists, such as those of required fields, only what goes and what comes.
        gone, come = ([one for one in mine if one not in theirs] for mine, theirs in ((before, after), (after, before)))
        if gone or come:
            before, after = gone or None, come or None
    return KeywordDifference(key, *(_short(side) if side is not None else "" for side in (before, after)))


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_WORDS else f"{text[: MAX_WORDS - 1]}…"


def _kept(root: Branch) -> set[Path]:
    """The branches to draw: those with the worst findings, each with all that lead to it."""
    ranked = sorted((one.worst, at, one.path) for at, one in enumerate(walk(root)))
    return {path for _, _, path in ranked[:MAX_BRANCHES]}


def _pruned(branch: Branch, kept: set[Path]) -> Branch:
    drawn = tuple(_pruned(one, kept) for one in branch.branches if one.path in kept)
    left_out = sum(1 for one in branch.branches if one.path not in kept for _ in walk(one))
    return replace(branch, branches=drawn, left_out=left_out)


def _flattened(branch: Branch, depth: int) -> Branch:
    """A field that only leads to one other is drawn with it as one; what is deeper than MAX_DEPTH stands in a row."""
    inner = tuple(_joined(one) for one in branch.branches)
    if depth < MAX_DEPTH:
        return replace(branch, branches=tuple(_flattened(one, depth + 1) for one in inner))
    deeper = (one for one in walk(branch) if one is not branch and _says_something(one))
    row = (replace(one, name=_relative(branch.path, one.path), branches=()) for one in deeper)
    return replace(branch, branches=tuple(row))


def _joined(branch: Branch) -> Branch:
    while len(branch.branches) == 1 and not _says_something(branch):
        only = branch.branches[0]
        branch = replace(only, name=_with(branch.name, only.name))
    return branch


def _says_something(branch: Branch) -> bool:
    return bool(branch.findings or branch.differences or branch.same or branch.left_out) or branch.mark is not Mark.SAME


def _relative(base: Path, path: Path) -> str:
    name = ""
    for part in path[len(base) :]:
        name = _with(name, str(part))
    return name


def _with(name: str, part: str) -> str:
    return f"{name}{part}" if part in (ITEMS, VALUES) or not name else f"{name}.{part}"


def _totals(findings: Iterable[Finding]) -> list[tuple[Severity, int]]:
    counted = Counter(finding.severity for finding in findings)
    return [(severity, counted[severity]) for severity in Severity if counted[severity]]
