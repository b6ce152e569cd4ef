"""How one account comes by its rights: bindings, the roles that they name, and the rules in these. Pure; bounded.

It is made from a report alone: the roles and bindings of its plan, and the ways that its findings name. What an account
holds by bindings outside of the bundle that nothing touches is not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import InvalidManifest
from provisioner.json_values import items, mapping, maps
from provisioner.rbac import PolicyRule, RbacObjects, RbacSubject
from provisioner.review.base.record import Mark
from provisioner.review.rights.permission_words import parts_of
from provisioner.values import Finding, JsonObject, ObjectIdentity, ObjectRef, PlannedAction, Report, Section, Severity

MAX_BINDINGS = 40
MAX_RULES = 40
_KINDS = ("ServiceAccount", "User", "Group")
_ACCOUNT = "ServiceAccount"
# Said once of every account that gains or loses a right, not of a rule.
_EFFECTS = ("RB-DIFF", "RB-LESS")
_HARMLESS = len(Severity)


@dataclass(frozen=True, slots=True)
class RuleNode:
    """One rule: what it lets do (`verbs`) with what (`objects`), both "" where the rule is not in the bundle.

    `origin` is the role in which it stands where that is another one, `file` where that role stands in the bundle.
    """

    index: int
    mark: Mark
    verbs: str
    objects: str
    origin: str = ""
    file: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def worst(self) -> int:
        return min((finding.severity.rank for finding in self.findings), default=_HARMLESS)


@dataclass(frozen=True, slots=True)
class BindingNode:
    """One binding and its role. `scope` is "" for the whole cluster, else a namespace.

    `rules` are those to look at: what changes, and what a finding is about. `same` stay as they were; `left_out` says
    how many of both are not drawn.
    """

    binding: str
    mark: Mark
    scope: str
    role: str
    role_mark: Mark
    is_role_known: bool
    rules: tuple[RuleNode, ...]
    same: tuple[RuleNode, ...]
    left_out: int = 0

    @property
    def worst(self) -> int:
        return min((rule.worst for rule in self.rules), default=_HARMLESS)

    @property
    def is_same(self) -> bool:
        return self.mark is Mark.SAME and self.role_mark is Mark.SAME and not self.rules


@dataclass(frozen=True, slots=True)
class AccountGraph:
    """One account with the ways to its rights, the worst first. `mark` is None for an account outside of the bundle.

    `findings` are those about it that no rule is named by. `hidden` and `left_out` say how many roles and bindings the
    viewer may not see, and how many bindings are not drawn. Not `is_effective`: no right is gained or lost.
    """

    account: str
    mark: Mark | None
    bindings: tuple[BindingNode, ...]
    findings: tuple[Finding, ...]
    counts: Mapping[Mark, int]
    hidden: int = 0
    left_out: int = 0
    is_effective: bool = True

    @property
    def totals(self) -> list[tuple[Mark, int]]:
        """How many rules there are of each mark, drawn or not."""
        return list(self.counts.items())

    @property
    def is_only_rearranged(self) -> bool:
        """Whether the ways differ and what the account may do in the end does not."""
        return not self.is_effective and any(mark is not Mark.SAME for mark in self.counts)


@dataclass(frozen=True, slots=True)
class _States:
    """The roles and bindings of a plan; `roles` holds by name each role as it was and as it will be."""

    before: RbacObjects
    after: RbacObjects
    roles: Mapping[str, tuple[JsonObject | None, JsonObject | None]]
    hidden: int


@dataclass(slots=True)
class _Way:
    """A binding with its role while the rules are gathered."""

    binding: str
    role: str
    scope: str
    was: bool = False
    is_: bool = False
    rules: dict[tuple[str, object], _Rule] = field(default_factory=dict)


@dataclass(slots=True)
class _Rule:
    origin: str
    index: int
    rule: PolicyRule | None
    was: bool = False
    is_: bool = False
    file: str = ""
    findings: dict[str, Finding] = field(default_factory=dict)


def accounts_of(report: Report) -> list[RbacSubject]:
    """Everybody whom a report's permissions are about, in the order of its findings, then whom its bindings name."""
    found: dict[RbacSubject, None] = {}
    for finding in report.in_section(Section.PERMISSIONS):
        ref = finding.ref
        if ref is not None and ref.kind in _KINDS and "subject" in finding.evidence:
            found[RbacSubject(ref.kind, ref.name, ref.namespace)] = None
    states = _states(report.plan.actions, frozenset())
    for subject in rbac.subjects([*states.before.bindings.values(), *states.after.bindings.values()]):
        if subject.kind in _KINDS:
            found.setdefault(subject)
    return list(found)


def account_graph(report: Report, subject: RbacSubject, *, hidden: Collection[ObjectIdentity] = ()) -> AccountGraph:
    """The ways of `subject` to its rights before and after. Of `hidden` objects nothing is drawn but their number."""
    states = _states(report.plan.actions, hidden)
    told = [
        finding for finding in report.in_section(Section.PERMISSIONS) if finding.evidence.get("subject") == str(subject)
    ]
    ways = _ways(states, subject)
    placed = {finding.fingerprint for finding in told if _place_finding(finding, ways, states)}
    nodes = [_node(way, states) for way in ways.values()]
    nodes.sort(key=lambda node: (node.worst, node.is_same, node.binding, node.role))
    counts = Counter(rule.mark for node in nodes for rule in (*node.rules, *node.same))
    drawn = []
    for node in nodes[:MAX_BINDINGS]:
        left_out = max(0, len(node.rules) - MAX_RULES) + max(0, len(node.same) - MAX_RULES)
        drawn.append(replace(node, rules=node.rules[:MAX_RULES], same=node.same[:MAX_RULES], left_out=left_out))
    mark = None
    for planned in report.plan.actions:
        ref = planned.ref
        if (ref.group, ref.kind, ref.namespace, ref.name) == ("", _ACCOUNT, subject.namespace, subject.name):
            mark = Mark.of(was=planned.before is not None, is_=planned.after is not None)
            break
    return AccountGraph(
        str(subject),
        mark,
        tuple(drawn),
        tuple(finding for finding in told if finding.fingerprint not in placed),
        {mark: counts[mark] for mark in Mark if counts[mark]},
        states.hidden,
        len(nodes) - len(drawn),
        any(finding.rule in _EFFECTS or finding.is_new for finding in told),
    )


def _states(actions: Iterable[PlannedAction], hidden: Collection[ObjectIdentity]) -> _States:
    of_rbac = [planned for planned in actions if planned.ref.group == RBAC_GROUP]
    seen = [planned for planned in of_rbac if planned.ref.identity not in hidden]
    before, after = (
        RbacObjects.of(obj for obj in side if obj is not None)
        for side in ([planned.before for planned in seen], [planned.after for planned in seen])
    )
    roles = {
        str(ObjectRef.of(before.roles.get(key) or after.roles[key])): (before.roles.get(key), after.roles.get(key))
        for key in {*before.roles, *after.roles}
    }
    return _States(before, after, roles, len(of_rbac) - len(seen))


def _ways(states: _States, subject: RbacSubject) -> dict[tuple[str, str], _Way]:
    """Every binding of the plan that names `subject`, on either side, with the rules that it gives."""
    ways: dict[tuple[str, str], _Way] = {}
    for is_after, side in ((False, states.before), (True, states.after)):
        for binding, _ in side.bindings_of(subject.identity):
            ref, wanted = ObjectRef.of(binding), mapping(binding.get("roleRef"))
            place = "" if wanted.get("kind") == "ClusterRole" else ref.namespace
            role = str(ObjectRef(RBAC_GROUP, "v1", str(wanted.get("kind")), place, str(wanted.get("name"))))
            scope = "" if ref.kind == "ClusterRoleBinding" else ref.namespace
            way = ways.setdefault((str(ref), role), _Way(str(ref), role, scope))
            way.was, way.is_ = way.was or not is_after, way.is_ or is_after
    for is_after, side in ((False, states.before), (True, states.after)):
        for grant in rbac.effective_rules(subject.identity, side).grants:
            rules, origin = ways[str(grant.binding), str(grant.role)].rules, str(grant.origin)
            # A rule that stands elsewhere in its role is the same rule.
            rule = rules.setdefault((origin, grant.rule), _Rule(origin, grant.rule_index, grant.rule))
            rule.was, rule.is_ = rule.was or not is_after, rule.is_ or is_after
            rule.index = grant.rule_index
    return ways


def _place_finding(finding: Finding, ways: dict[tuple[str, str], _Way], states: _States) -> bool:
    """Put a finding at each rule that it names, those of other bindings of the cluster too; whether there is any."""
    named = [way for way in maps(finding.evidence.get("by")) if isinstance(way.get("rule"), int)]
    for one in named:
        binding, role, origin = (str(one.get(key, "")) for key in ("binding", "role", "origin"))
        scope = str(finding.evidence.get("scope") or "")
        way = ways.setdefault((binding, role), _Way(binding, role, scope, was=True, is_=True))
        rule = _named_rule(way, origin, one["rule"], states)
        rule.file = str(one.get("file", "")) or rule.file
        rule.was = rule.was or (not rule.is_ and not finding.is_new)
        rule.is_ = True
        if finding.rule not in _EFFECTS:
            rule.findings[finding.fingerprint] = finding
    return bool(named) and finding.rule not in _EFFECTS


def _named_rule(way: _Way, origin: str, index: int, states: _States) -> _Rule:
    known = (rule for rule in way.rules.values() if (rule.origin, rule.index, rule.is_) == (origin, index, True))
    if (found := next(known, None)) is not None:
        return found
    before, after = states.roles.get(origin, (None, None))
    listed = items((after or {}).get("rules"))
    written = listed[index] if index < len(listed) else None
    was = written is not None and written in items((before or {}).get("rules"))
    try:
        rule = PolicyRule.from_object(written) if isinstance(written, Mapping) else None
    except InvalidManifest:
        rule = None  # such a rule grants nothing that could be told
    return way.rules.setdefault((origin, index), _Rule(origin, index, rule, was=was))


def _node(way: _Way, states: _States) -> BindingNode:
    rules = []
    for rule in way.rules.values():
        verbs, objects = parts_of(rule.rule) if rule.rule else ("", "")
        origin = "" if rule.origin == way.role else rule.origin
        findings = tuple(sorted(rule.findings.values(), key=lambda finding: finding.severity.rank))
        mark = Mark.of(was=rule.was, is_=rule.is_)
        rules.append(RuleNode(rule.index, mark, verbs, objects, origin, rule.file, findings))
    rules.sort(key=lambda rule: (rule.worst, rule.index))
    looked_at = tuple(rule for rule in rules if rule.mark is not Mark.SAME or rule.findings)
    same = tuple(rule for rule in rules if rule not in looked_at)
    before, after = states.roles.get(way.role, (None, None))
    is_known = before is not None or after is not None
    role_mark = Mark.of(was=before is not None, is_=after is not None) if is_known else Mark.SAME
    if before is not None and after is not None:
        is_same = all(before.get(part) == after.get(part) for part in ("rules", "aggregationRule"))
        role_mark = Mark.SAME if is_same else Mark.CHANGED
    mark = Mark.of(was=way.was, is_=way.is_)
    return BindingNode(way.binding, mark, way.scope, way.role, role_mark, is_known, looked_at, same)
