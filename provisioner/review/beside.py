"""Which findings are made of live objects that are not in the plan, such as roles, webhooks and lists (S09).

The checks look once more without those objects. What comes out the same was said of the bundle and its own objects.
What does not keeps its rule and its severity, and is shown in full to people who may get all the objects that it is
made of; others get what can be said without them.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from provisioner.api_groups import RBAC_GROUP
from provisioner.review.base.facts import STATED, Facts, Listed
from provisioner.review.base.messages import said
from provisioner.review.base.record import plain
from provisioner.review.rules import rule_text
from provisioner.values import Finding, JsonObject, ObjectRef, Severity, display_name

ROLES = tuple(
    ObjectRef(RBAC_GROUP, "v1", kind, "", "") for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
)
# How many objects go with a deletion, or were looked at, is what people decide by, and no value of any of them.
COUNTING = frozenset({"DEL-01", "CRD-08", "IMM-01", "LIV-07"})
# What was not looked at is not counted: "nothing" would be a statement about the cluster.
UNREAD = Listed(total=None, problem="what the stored objects show is only for people who may get them")
# What an account lacks the API server says when asked; beyond the questions that are asked, roles say the same.
LACKING = "PRE-01"
Key = tuple[object, ...]
Look = Callable[[Facts], list[Finding]]


@dataclass(frozen=True, slots=True)
class _Part:
    """What a finding is made of beside the plan, and the finding that says it without that, if any does."""

    sources: tuple[ObjectRef, ...]
    bare: Finding | None


def key_of(finding: Finding) -> Key:
    """What makes two findings of two looks the same."""
    ref = finding.ref.identity if finding.ref else None
    return (finding.rule, finding.severity, ref, finding.path, said(finding))


def words_without_details(finding: Finding) -> str:
    """What may be said of a finding where its own words are values: where it was found, and what its rule means.

    The object comes first, since a headline cuts what is long.
    """
    which = f"{display_name(finding.ref)} as it is" if finding.ref else "Objects as they are"
    rule = rule_text(finding.rule)
    means = rule.means.rstrip(".") if rule else finding.rule
    return f"{which} in the cluster: {means}"


def told_apart(facts: Facts, look: Look, found: list[Finding], withheld: list[Finding]) -> list[Finding]:
    """`withheld`, which are `found` in the same order, with the objects beside the plan that each is made of."""
    # What a check says on purpose for those alone who may get its sources stands in other words for everybody.
    parts = [[_Part(one.sources, None)] if one.sources and one.evidence.get(STATED) else [] for one in found]
    for bare, sources in _without(facts):
        for place, part in enumerate(_parts(found, look(bare), sources)):
            if part is not None:
                parts[place].append(part)
    everything = zip(found, withheld, parts, strict=True)
    return [_made_of(facts, one, shown, of) if of else shown for one, shown, of in everything]


def _without(facts: Facts) -> Iterator[tuple[Facts, tuple[ObjectRef, ...]]]:
    """`facts` without each kind of object beside the plan that was read, with what these are."""
    if facts.live_rbac:
        yield replace(facts, live_rbac=None), ROLES
    if others := _without_others(facts):
        yield others


def without_all(facts: Facts) -> tuple[Facts, tuple[ObjectRef, ...]]:
    """`facts` without any object beside the plan that was read, with what these are."""
    bare = replace(facts, live_rbac=None)
    without, read = _without_others(bare) or (bare, ())
    return without, (*(ROLES if facts.live_rbac else ()), *read)


def _without_others(facts: Facts) -> tuple[Facts, tuple[ObjectRef, ...]] | None:
    """`facts` without objects and lists beside the plan; None where there are none."""
    planned = {one.ref.identity for one in facts.plan.actions}
    others = {key: obj for key, obj in facts.live.items() if key not in planned and obj is not None}
    lists = {listing: listed for listing, listed in facts.around.lists.items() if listed.objects}
    if not (others or lists):
        return None
    names = {key: _name_alone(obj) for key, obj in others.items()}
    around = replace(facts.around, lists={**facts.around.lists, **dict.fromkeys(lists, UNREAD)})
    read = {ObjectRef.of(one) for one in others.values()}
    read |= {ObjectRef(one.group, one.version, one.kind, one.namespace, "") for one in lists}
    return replace(facts, live={**facts.live, **names}, around=around), tuple(sorted(read))


def _name_alone(obj: JsonObject) -> JsonObject:
    """That it exists is no value."""
    ref = ObjectRef.of(obj)
    meta = {"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {})
    return {"apiVersion": obj.get("apiVersion"), "kind": ref.kind, "metadata": meta}


def _parts(found: list[Finding], bare: list[Finding], sources: tuple[ObjectRef, ...]) -> Iterator[_Part | None]:
    """For each finding None where it says the same without these objects."""
    same: dict[Key, list[Finding]] = defaultdict(list)
    near: dict[Key, list[Finding]] = defaultdict(list)
    for one in bare:
        same[key_of(one)].append(one)
        if one.severity is not Severity.UNKNOWN:
            near[_place(one)].append(one)
    counted: dict[Key, int] = defaultdict(int)
    for one in found:
        counted[_place(one)] += 1
    for one in found:
        equal = same[key_of(one)]
        if one.rule == LACKING or any(
            it.fingerprint == one.fingerprint and plain(it.evidence) == plain(one.evidence) for it in equal
        ):
            yield None
        elif equal or one.rule in COUNTING:
            yield _Part(sources, one)
        else:
            others = near[_place(one)]
            is_only = len(others) == 1 and counted[_place(one)] == 1
            yield _Part(sources, others[0] if is_only else None)


def _place(finding: Finding) -> Key:
    return (finding.rule, finding.ref.identity if finding.ref else None, finding.path)


def _made_of(facts: Facts, found: Finding, shown: Finding, parts: list[_Part]) -> Finding:
    """`shown` with its sources, and in words that can be told without them; its name can then not be guessed either."""
    sources = [*shown.sources, *(source for part in parts for source in part.sources)]
    is_merged = shown.is_withheld and not found.is_withheld
    if is_merged or shown.server_words:
        sources += [found.ref] if found.ref else [one.ref for one in facts.plan.actions if one.uid]
    others = {part.bare and said(part.bare): part.bare for part in parts}
    others.pop(said(found), None)
    if not is_merged and others:
        bare = next(iter(others.values())) if len(others) == 1 else None
        words = bare.message if bare else found.evidence.get(STATED) or words_without_details(found)
        kept = "; ".join(filter(None, [found.message, shown.server_words]))
        shown = replace(shown, message=words, server_words=kept, is_withheld=True)
    salted = hashlib.sha256(f"{shown.fingerprint}\n{facts.salt}".encode()).hexdigest()
    return replace(shown, sources=tuple(dict.fromkeys(sources)), fingerprint=salted)
