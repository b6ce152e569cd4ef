"""Fields that change and that no rule judges: each is a finding, with what was and what will be (S36). Pure.

One rule never says "safe" of what nobody looked at. Of kinds that no rule names, such as custom resources, the whole
object is one finding.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from provisioner.builtin import knows
from provisioner.masking import CHANGED, masked_value
from provisioner.review.base.claims import EVERY_KIND, PODS, Claim, Claims
from provisioner.review.base.facts import Facts, ReviewRule
from provisioner.review.base.messages import FIELDS, UNCLAIMED, UNJUDGED
from provisioner.review.judged.harmless import RULE as HARMLESS
from provisioner.review.judged.harmless import HarmlessField, harmless_here, join_texts
from provisioner.review.judged.leaves import ABSENT, EMPTY, ORDER, Leaf, Path, changed_leaves
from provisioner.review.workloads.pod_specs import PodSpec, mentions, pod_specs, pods_of_service
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, PlannedAction, Section, Severity

_SERVICE, _CONFIG_MAP = GroupKind("", "Service"), GroupKind("", "ConfigMap")
# Of these kinds what selects by labels selects pods and nothing else; what it does with them has rules of its own.
_SELECTING_PODS = PODS | {
    _SERVICE,
    GroupKind("networking.k8s.io", "NetworkPolicy"),
    GroupKind("policy", "PodDisruptionBudget"),
}
_POD_SELECTORS = frozenset({"selector", "podSelector", "labelSelector"})
_NAMESPACE = GroupKind("", "Namespace")
_OF_KUBERNETES = "kube-"
_RECOMMENDED = tuple(
    f"app.kubernetes.io/{name}"
    for name in ("component", "created-by", "instance", "managed-by", "name", "part-of", "version")
)

LABELS = tuple(
    HarmlessField(
        EVERY_KIND,
        (f"metadata.labels.[{key}]", f"{{pod-meta}}.labels.[{key}]", f"spec.jobTemplate.metadata.labels.[{key}]"),
        "Kubernetes and Helm recommend these labels for people and tools. Services, network policies and workloads "
        "select pods by them, which is told of those. Not where anything else in the bundle, or in what was read of "
        "the cluster, names the key: a webhook or an operator could select by it",
        label=key,
    )
    for key in (*_RECOMMENDED, "helm.sh/chart")
)
SELECTORS = HarmlessField(
    frozenset(GroupKind("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
    ("spec.selector",),
    "The API server takes only a selector that picks the pods of the object's own template",
)
PORTS = HarmlessField(
    PODS,
    tuple(f"{{pod}}.containers.*.ports.*.{field}" for field in ("containerPort", "name", "protocol")),
    "What a container listens on can be reached in the cluster whether it is declared or not. A port of the node is "
    "told by POD-06",
)
LEADING = HarmlessField(
    frozenset({_SERVICE}),
    ("spec.ports", "spec.selector"),
    "Of a Service that leads to pods of the bundle: they get a name and a port in the cluster. What opens them to "
    "others, its type, ports of nodes and addresses, has rules of its own",
)
DATA = HarmlessField(
    frozenset({_CONFIG_MAP}),
    ("data", "binaryData"),
    "Of a ConfigMap that no pod of the bundle mounts, reads, runs or names, in the namespace that the bundle is "
    "installed into or in one that it brings, and in none of Kubernetes: others look for theirs elsewhere",
)
TABLE = (*LABELS, SELECTORS, PORTS, LEADING, DATA)


@dataclass(frozen=True, slots=True)
class NewObjects:
    """What of the new objects of a change needs no rule."""

    _pods: tuple[PodSpec, ...]
    _read: frozenset[object]
    _named: str
    _namespaces: frozenset[str]
    # By whether it is a Service that leads to pods of the bundle, or a ConfigMap that nothing of it obeys.
    _claims: Mapping[HarmlessField | None, Claims]

    @classmethod
    def of(cls, facts: Facts) -> NewObjects:
        bodies = tuple(manifest.body for manifest in facts.content.manifests)
        pods = tuple(pod_specs(bodies))
        read = frozenset(mention.ref.identity for pod in pods for mention in mentions(pod))
        named = join_texts([pod.body for pod in pods])
        known = (*bodies, *(obj for obj in facts.live.values() if obj is not None))
        texts = []
        for body in known:
            is_of_pods = ObjectRef.of(body).group_kind in _SELECTING_PODS
            texts.append(join_texts(body, {"labels", *(_POD_SELECTORS if is_of_pods else ())}))
        text = "\n".join(texts)
        labels = [field for field in LABELS if field.label not in text]
        fields = {more: [*labels, SELECTORS, PORTS, *([more] if more else [])] for more in (None, LEADING, DATA)}
        brought = {manifest.ref.name for manifest in facts.content.manifests if manifest.ref.group_kind == _NAMESPACE}
        own = frozenset({facts.content.install_namespace, *brought})
        return cls(pods, read, named, own, {one: Claims.of(each.claim for each in of) for one, of in fields.items()})

    def left(self, ref: ObjectRef, body: JsonObject, leaves: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
        """Those of the leaves of a new object that a rule would have to judge."""
        more = None
        if ref.group_kind == _SERVICE and pods_of_service(body, self._pods):
            more = LEADING
        elif ref.group_kind == _CONFIG_MAP:
            is_named = ref.identity in self._read or ref.name in self._named
            is_own = ref.namespace in self._namespaces and not ref.namespace.startswith(_OF_KUBERNETES)
            more = DATA if is_own and not is_named else None
        claims = self._claims[more]
        return tuple(leaf for leaf in leaves if not claims.judge_of(ref.group_kind, leaf.path))


NOT_SET = "not set"
MAX_VALUE = 60
# Of one field in several objects, and of the fields of one object, before a number stands for the rest.
MAX_VALUES = 3
MAX_NAMED = 6
# Characters of the first changes of an object of a kind that no rule names.
MAX_TOGETHER = 100
MAX_CHANGES = 20
# What makes an object this one and no other: that it is created is said.
_IDENTITY = frozenset({("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")})
_WRITTEN = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN, Action.SKIP})
_CHANGING = frozenset({Action.UPDATE, Action.REPLACE})
# Built-in groups whose objects govern others: to change one unseen is worse than to change a plain object, unless rules
# judge what matters of its kind.
_POWERFUL_GROUPS = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiregistration.k8s.io",
        "certificates.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "rbac.authorization.k8s.io",
        "security.openshift.io",
        "storage.k8s.io",
    }
)


@dataclass(frozen=True, slots=True)
class _Left:
    """What of one planned action no rule judges; `is_ruled` where rules judge other fields of its kind.

    `harmless` is what of it is so by nature.
    """

    planned: PlannedAction
    leaves: tuple[Leaf, ...]
    is_ruled: bool = False
    harmless: tuple[Leaf, ...] = ()

    @property
    def severity(self) -> Severity:
        is_power = self.kind.group in _POWERFUL_GROUPS and not self.is_ruled
        is_inside = any(leaf.path[0] != "metadata" for leaf in self.leaves)
        return Severity.DANGEROUS if is_power and is_inside else Severity.NOTABLE

    @property
    def kind(self) -> GroupKind:
        return self.planned.ref.group_kind

    @property
    def is_new(self) -> bool:
        return self.planned.before is None


def unjudged(facts: Facts, sound: Iterable[Claim], everything: Iterable[Claim]) -> list[Finding]:
    """A finding for each field that changes and that no claim of a `sound` check holds, and what is harmless by nature.

    `everything` is what is claimed by all checks, also those that crashed: by it a kind is known.
    """
    judging = (*sound, *harmless_here(facts))

    @cache
    def claims_of(is_hook: bool, is_new: bool) -> Claims:
        return Claims.of(
            claim for claim in judging if (is_hook or not claim.is_of_hooks) and (is_new or not claim.is_of_new)
        )

    known = _Kinds(Claims.of(everything))
    wished = {manifest.ref.identity: manifest.body for manifest in facts.content.manifests}
    hooks = {manifest.ref.identity for manifest in facts.content.manifests if manifest.hook}
    new = NewObjects.of(facts)
    left: list[_Left] = []
    unknown: list[Finding] = []
    harmless: list[Finding] = []
    for planned in facts.plan.actions:
        if planned.action not in _WRITTEN:
            continue
        is_known = known.has(planned.ref)
        judges = claims_of(planned.ref.identity in hooks, planned.before is None)
        found = _left(planned, wished.get(planned.ref.identity), judges, is_known=is_known)
        if found is None:
            rule = ReviewRule(UNJUDGED if is_known else UNCLAIMED, Section.OBJECTS, Severity.UNKNOWN)
            action = str(planned.action)
            unknown.append(rule.finding("unshown", planned.ref, key=action, action=action))
            continue
        if found.is_new and is_known:
            body = wished.get(planned.ref.identity) or planned.after or {}
            found = replace(found, leaves=new.left(planned.ref, body, found.leaves))
        if found.harmless:
            rule, key = ReviewRule(HARMLESS, Section.OBJECTS, Severity.SAFE), _leaf_keys(found.harmless)
            harmless.append(rule.finding("harmless", planned.ref, key=key, **_evidence(found.harmless)))
        if found.leaves and is_known:
            left.append(replace(found, is_ruled=known.claims.judges_inside(found.kind)))
        elif found.leaves:
            unknown.append(_of_unknown_kind(found))
    return [*_of_new(left), *_of_changed(left), *unknown, *harmless]


@dataclass(slots=True)
class _Kinds:
    """Kinds of which fields are judged one by one: Kubernetes' own, and those that a rule names."""

    claims: Claims
    _known: dict[tuple[str, GroupKind], bool] = field(default_factory=dict)

    def has(self, ref: ObjectRef) -> bool:
        key = (ref.api_version, ref.group_kind)
        if key not in self._known:
            self._known[key] = self.claims.knows(ref.group_kind) or knows(ref.api_version, ref.kind) is True
        return self._known[key]


def pattern_of(path: Path) -> str:
    """A path as people and policies read it: spec.ports[].nodePort, metadata.labels.[app.kubernetes.io/name]."""
    words = ""
    for part in path:
        if isinstance(part, int):
            words += "[]"
        elif part == ORDER:
            words += " (order)"
        elif part != EMPTY:
            key = f"[{part}]" if "." in part else part
            words += f".{key}" if words else key
    return words


def _left(planned: PlannedAction, wished: JsonObject | None, claims: Claims, *, is_known: bool) -> _Left | None:
    """What no rule judges of it; None where nobody could see its fields, and nothing else says so.

    Of a new object it is what the content sets: nobody wished for what the server adds.
    """
    before, after = planned.before, planned.after
    if before is None and planned.action in _CHANGING:
        return _Left(planned, ()) if planned.problem else None
    if before is None and wished is not None:
        after = wished
    if after is None and wished is None:
        return _Left(planned, ()) if planned.problem else None
    leaves = changed_leaves(
        before, after if after is not None else wished, claims.root(planned.ref.group_kind), has_nulls=not is_known
    )
    if after is None:  # what the server would make of it is not known: its own fields stay as they are
        leaves = [leaf for leaf in leaves if leaf.after is not ABSENT]
    left = tuple(leaf for leaf in leaves if not leaf.is_harmless)
    harmless = tuple(leaf for leaf in leaves if leaf.is_harmless) if before is not None else ()
    # That there is one of an unknown kind says something by itself, whatever it holds.
    is_told = before is None and not is_known and ("kind",) in {leaf.path for leaf in left}
    rest = tuple(leaf for leaf in left if leaf.path not in _IDENTITY)
    return _Left(planned, rest or left if is_told else rest, harmless=harmless)


def _of_changed(left: Sequence[_Left]) -> Iterator[Finding]:
    """One finding for each field of each object, in the same words for all objects in which it changes."""
    places: dict[tuple[GroupKind, str], list[tuple[_Left, list[Leaf]]]] = defaultdict(list)
    for changed in left:
        if changed.is_new:
            continue
        fields: dict[str, list[Leaf]] = defaultdict(list)
        for leaf in changed.leaves:
            fields[pattern_of(leaf.path)].append(leaf)
        for pattern, leaves in fields.items():
            places[(changed.kind, pattern)].append((changed, leaves))
    for (_, pattern), found in places.items():
        values = list(dict.fromkeys(_cut_values(leaf) for _, leaves in found for leaf in leaves))
        shown = [{"before": before, "after": after} for before, after in values[:MAX_VALUES]]
        more = len(values) - len(shown) or None
        for one, leaves in found:
            yield _finding("changed", one, leaves, field=pattern, values=shown, more=more)


def _of_new(left: Sequence[_Left]) -> Iterator[Finding]:
    """One finding for each new object, in the same words for all of its kind."""
    kinds: dict[GroupKind, list[_Left]] = defaultdict(list)
    for new in left:
        if new.is_new:
            kinds[new.kind].append(new)
    for found in kinds.values():
        fields = list(dict.fromkeys(pattern_of(leaf.path) for new in found for leaf in new.leaves))
        shown = fields[:MAX_NAMED]
        more = len(fields) - len(shown) or None
        for new in found:
            yield _finding("new", new, new.leaves, total=len(fields), first=shown, more=more)


def _finding(variant: str, left: _Left, leaves: Sequence[Leaf], **params: Any) -> Finding:
    rule, action = ReviewRule(UNJUDGED, Section.OBJECTS, left.severity), str(left.planned.action)
    params |= _evidence(leaves)
    return rule.finding(variant, left.planned.ref, key=_leaf_keys(leaves), action=action, **params)


def _of_unknown_kind(left: _Left) -> Finding:
    """An object of a kind that no rule names, whole."""
    planned, action = left.planned, str(left.planned.action)
    inside = [leaf for leaf in left.leaves if leaf.path[0] != "metadata"]
    params: dict[str, Any] = {}
    if left.is_new:
        variant = "new"
    elif inside:
        # As many changes as a line or two hold, with their values, and how many more there are.
        variant, first, length = "changed", list[dict[str, str]](), 0
        for leaf in inside[:MAX_VALUES]:
            field, (before, after) = pattern_of(leaf.path), _cut_values(leaf)
            length += len(f"{field} {before} → {after}")
            if not first or length <= MAX_TOGETHER:
                first.append({"field": field, "before": before, "after": after})
        params = {"first": first, "more": len(left.leaves) - len(first) or None}
    else:
        parts = list(dict.fromkeys(pattern_of(leaf.path[:2]) for leaf in left.leaves))
        variant, params = "metadata", {"total": len(left.leaves), "parts": parts}
    params |= _evidence(left.leaves)
    rule, key = ReviewRule(UNCLAIMED, Section.OBJECTS, left.severity), [action, *_leaf_keys(left.leaves)]
    return rule.finding(variant, planned.ref, key=key, action=action, **params)


def _evidence(leaves: Sequence[Leaf]) -> dict[str, Any]:
    """The fields, and the first of them with their values; the difference of the object has the others."""
    changes = []
    for leaf in leaves[:MAX_CHANGES]:
        before, after = _shown_values(leaf)
        changes.append({"path": [*leaf.path], "before": before, "after": after})
    fields = list(dict.fromkeys(pattern_of(leaf.path) for leaf in leaves))
    return {FIELDS: fields, "changes": changes, "left_out": max(0, len(leaves) - MAX_CHANGES)}


def _leaf_keys(leaves: Sequence[Leaf]) -> list[list[str]]:
    """Where and what will be, which makes it another finding as soon as that is another."""
    return [[pattern_of(leaf.path), _value_text(leaf.after)] for leaf in leaves]


def _cut_values(leaf: Leaf) -> tuple[str, str]:
    before, after = _shown_values(leaf)
    return _cut(before), _cut(after)


def _shown_values(leaf: Leaf) -> tuple[str, str]:
    """Both values in words, without what is a credential."""
    before, after = (
        NOT_SET if value is ABSENT else _value_text(masked_value(value, leaf.name))
        for value in (leaf.before, leaf.after)
    )
    return before, f"{after} ({CHANGED})" if before == after else after


def _value_text(value: Any) -> str:
    if value is ABSENT:
        return NOT_SET
    is_plain = isinstance(value, str) and value.isprintable() and value == value.strip() and value
    return str(value) if is_plain else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"
