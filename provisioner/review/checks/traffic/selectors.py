"""Which pods Services lead to and network policies hold, where selectors or labels of pods change that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, mapping, maps
from provisioner.review.base.renames import renamed, renames
from provisioner.review.checks.network.policy_reach import PEERS, restricts
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs, pods_of_policy, pods_of_service, selector_of
from provisioner.values import Finding, GroupKind, JsonObject, ObjectIdentity, ObjectRef, Section, Severity

_LEADS_ELSEWHERE = ReviewRule("SV-04", Section.OBJECTS, Severity.DANGEROUS)
_LEADS_TO_FEWER = ReviewRule("SV-04", Section.OBJECTS, Severity.NOTABLE)
_LETS_GO = ReviewRule("NP-05", Section.OBJECTS, Severity.DANGEROUS)
_CUTS_OFF = ReviewRule("NP-05", Section.OBJECTS, Severity.NOTABLE)
_HOLDS_OTHERS = ReviewRule("NP-05", Section.OBJECTS, Severity.NOTABLE)

_SERVICE = GroupKind("", "Service")
_POLICY = GroupKind("networking.k8s.io", "NetworkPolicy")
_OUTSIDE = "ExternalName"
_Select = Callable[[JsonObject, Sequence[PodSpec]], list[PodSpec]]


@dataclass(frozen=True, slots=True)
class _Selected:
    """One object before and after, with the workloads whose pods it selects; `all_before` are those that there were."""

    ref: ObjectRef
    old: JsonObject
    new: JsonObject
    was: Mapping[ObjectIdentity, ObjectRef]
    now: Mapping[ObjectIdentity, ObjectRef]
    all_before: frozenset[ObjectIdentity]
    all_after: frozenset[ObjectIdentity]

    @property
    def joined(self) -> list[ObjectRef]:
        return [ref for key, ref in self.now.items() if key not in self.was]

    @property
    def left(self) -> list[ObjectRef]:
        """Those that are still there and no longer selected."""
        return [ref for key, ref in self.was.items() if key not in self.now and key in self.all_after]

    @property
    def is_replaced(self) -> bool:
        """Whether all that it led to is gone, and all that it leads to is new."""
        gone = bool(self.was) and not self.all_after & self.was.keys()
        return gone and bool(self.now) and not self.all_before & self.now.keys()


def _changes(facts: Facts) -> Iterator[Finding]:
    is_followed = not facts.hides_old_names  # else it would quote what led elsewhere under another name
    former = (renamed(facts, renames(facts)) if is_followed else None) or facts.previous_state()
    both = list(_both_sides(facts, former))
    yield from _of_isolation(facts.state(), former)
    if not both:
        return
    pods = list(pod_specs(former.objects)), list(pod_specs(facts.state().objects))
    policies = [obj for ref, obj in facts.state().named if ref.group_kind == _POLICY]
    for ref, old, new in both:
        if ref.group_kind == _SERVICE:
            yield from _of_service(_selected(ref, old, new, pods, pods_of_service))
        else:
            yield from _of_policy(_selected(ref, old, new, pods, pods_of_policy), policies, pods[1])


def _both_sides(facts: Facts, former: StateFacts) -> Iterator[tuple[ObjectRef, JsonObject, JsonObject]]:
    """The Services and policies that were there, also those that stay as they are: labels of pods may change."""
    known = {ref.identity: obj for ref, obj in former.named if ref.group_kind in (_SERVICE, _POLICY)}
    known |= {one.ref.identity: one.before for one in facts.plan.actions if one.before is not None}
    for ref, obj in facts.state().named:
        if ref.group_kind in (_SERVICE, _POLICY) and ref.identity in known:
            yield ref, known[ref.identity], obj


def _selected(
    ref: ObjectRef, old: JsonObject, new: JsonObject, pods: tuple[list[PodSpec], list[PodSpec]], select: _Select
) -> _Selected:
    was, now = ({pod.ref.identity: pod.ref for pod in select(*side)} for side in zip((old, new), pods, strict=True))
    everything = [frozenset(pod.ref.identity for pod in side) for side in pods]
    return _Selected(ref, old, new, was, now, *everything)


def _of_service(one: _Selected) -> Iterator[Finding]:
    """Where a Service leads to no pod of the bundle any more, AVL-04 says so."""
    selectors = old, new = selector_of(one.old), selector_of(one.new)
    if any(mapping(side.get("spec")).get("type") == _OUTSIDE for side in (one.old, one.new)):
        return
    if new:
        yield from _of_pods(one, selectors)
    elif old:
        yield _of(_LEADS_ELSEWHERE, "no-selector", one, selectors)


def _of_pods(one: _Selected, selectors: tuple[Mapping[str, Any], Mapping[str, Any]]) -> Iterator[Finding]:
    old, new = selectors
    if one.was and not one.now:
        return
    if joined := _joined(one, is_same=old == new):
        rule = _LEADS_TO_FEWER if one.is_replaced else _LEADS_ELSEWHERE
        gone = [ref for key, ref in one.was.items() if key not in one.now]
        yield _of(rule, "other-pods", one, selectors, joined=joined, gone=gone)
    elif one.left:
        yield _of(_LEADS_TO_FEWER, "fewer-pods", one, selectors, gone=one.left)
    elif old != new and one.now:
        yield _of(_LEADS_TO_FEWER, "same-pods", one, selectors)
    elif old != new:
        is_narrower = bool(old) and old.items() <= new.items()
        # Where a bundle brings no pods, others make them for it, as operators do.
        rule = _LEADS_TO_FEWER if is_narrower or not one.all_after else _LEADS_ELSEWHERE
        yield _of(rule, "fewer-outside" if is_narrower else "other-outside", one, selectors)


def _joined(one: _Selected, *, is_same: bool) -> list[ObjectRef]:
    """Whose pods get its traffic now; of an unchanged Service not what merely stands in the place of what is gone."""
    is_shared = any(key in one.was for key in one.now)
    return [ref for ref in one.joined if not is_same or is_shared or ref.identity in one.all_before]


def _of_policy(one: _Selected, policies: Sequence[JsonObject], pods: Sequence[PodSpec]) -> Iterator[Finding]:
    selectors = tuple(mapping(mapping(side.get("spec")).get("podSelector")) for side in (one.old, one.new))
    if free := _unheld(one, policies, pods):
        yield _of(_LETS_GO, "free", one, selectors, pods=free)
    elif one.left:
        yield _of(_HOLDS_OTHERS, "still-held", one, selectors, pods=one.left)
    joined = [ref for ref in one.joined if ref.identity in one.all_before]
    if joined:
        yield _of(_HOLDS_OTHERS, "newly-held", one, selectors, pods=joined)


def _of_isolation(state: StateFacts, former: StateFacts) -> Iterator[Finding]:
    """Policies that restrict pods which everybody could reach, or which could reach everybody: until now no policy did
    so in that direction."""
    known = {ref.identity: obj for ref, obj in former.named if ref.group_kind == _POLICY}
    policies = [(ref, obj) for ref, obj in state.named if ref.group_kind == _POLICY]
    was, now = (list(pod_specs(side.objects)) if policies else [] for side in (former, state))
    for direction in PEERS:
        restricting = [obj for obj in known.values() if direction in _directions(obj)]
        free = {one.ref.identity for one in was if not any(pods_of_policy(obj, [one]) for obj in restricting)}
        for ref, policy in policies:
            spec, old = mapping(policy.get("spec")), known.get(ref.identity)
            if not restricts(spec, direction) or old in restricting or _lets_all(spec, direction):
                continue
            if cut := [one.ref for one in pods_of_policy(policy, now) if one.ref.identity in free]:
                where, key = ("spec", direction), [direction, list(map(str, cut))]
                told = {"pods": cut, "who": _who(spec, direction)}
                yield _CUTS_OFF.finding(f"cuts-off-{direction}", ref, where=where, key=key, **told)


def _lets_all(spec: Mapping[str, Any], direction: str) -> bool:
    return any(not rule.get(PEERS[direction]) and not rule.get("ports") for rule in maps(spec.get(direction)))


def _who(spec: Mapping[str, Any], direction: str) -> str:
    """Whom the rules of a policy let through, as a phrase of NP-05."""
    rules = maps(spec.get(direction))
    peers = [peer for rule in rules for peer in maps(rule.get(PEERS[direction]))]
    if not rules:
        return "nobody"
    if any(not rule.get(PEERS[direction]) for rule in rules):
        return "everybody-on-ports"
    is_near = all("podSelector" in one and not one.keys() & {"namespaceSelector", "ipBlock"} for one in peers)
    return "own-namespace" if is_near else "named"


def _unheld(one: _Selected, policies: Sequence[JsonObject], pods: Sequence[PodSpec]) -> list[ObjectRef]:
    """Of the pods that it lets go, those that nothing restricts any more in a direction in which it did."""
    directions = _directions(one.old)
    others = [obj for obj in policies if ObjectRef.of(obj).identity != one.ref.identity]
    found = []
    for ref in one.left:
        own = [pod for pod in pods if pod.ref.identity == ref.identity]
        still = {word for obj in others if pods_of_policy(obj, own) for word in _directions(obj)}
        if directions - still:
            found.append(ref)
    return found


def _directions(policy: JsonObject) -> set[str]:
    return {one for one in PEERS if restricts(mapping(policy.get("spec")), one)}


def _of(
    rule: ReviewRule, variant: str, one: _Selected, selectors: tuple[Mapping[str, Any], ...], **pods: list[ObjectRef]
) -> Finding:
    where = ("spec", "selector" if one.ref.group_kind == _SERVICE else "podSelector")
    was, now = (list(side.values()) for side in (one.was, one.now))
    before, after = map(dict, selectors)
    evidence = {"before": before, "after": after, "selected_before": was, "selected": now, **pods}
    return rule.finding(variant, one.ref, where=where, key=[variant, before, after, was, now], **evidence)


CLAIMS = (
    # Nobody's traffic goes to a new Service yet.
    Claim("SV-04", frozenset({_SERVICE}), ("spec.selector",)),
    Claim("NP-05", frozenset({_POLICY}), ("spec.podSelector",)),
)
CHECK = Check("selectors", changes=_changes, claims=CLAIMS)
