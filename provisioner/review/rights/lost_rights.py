"""Rights that an account loses while pods of the bundle run as it: what of them those pods surely use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from provisioner import rbac
from provisioner.rbac import EffectiveRules, RbacSubject
from provisioner.review.base.facts import Facts, items, mapping, maps
from provisioner.review.rights.account_powers import account_of
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.values import AccessRequest, GroupKind

_READS, _WRITES = ("get", "list", "watch"), ("update", "patch")
_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_LEASES = ("coordination.k8s.io", "leases")


def pods_of(facts: Facts, subject: RbacSubject) -> list[PodSpec]:
    """The pods of the bundle that run as an account, as it will be."""
    return facts.once("pods by account", _pods_by_account).get(subject, [])


def _pods_by_account(facts: Facts) -> Mapping[RbacSubject, list[PodSpec]]:
    found: dict[RbacSubject, list[PodSpec]] = {}
    for pod in pod_specs(tuple(one.body for one in facts.content.manifests)):
        found.setdefault(account_of(pod, facts.content.install_namespace), []).append(pod)
    return found


def lost_though_used(facts: Facts, subject: RbacSubject, old: EffectiveRules, new: EffectiveRules) -> list[str]:
    """What an account can no longer do, although its pods have to: read or write kinds that the bundle defines, and
    Leases where a container elects a leader. Only what a rule named: of `*` nobody knows what was used."""
    used = list(_defined(facts))
    if any(_elects(pod) for pod in pods_of(facts, subject)):
        used.append(_LEASES)
    found = []
    for group, resource in used:
        asked = [AccessRequest(verb, group, resource, namespace=subject.namespace) for verb in (*_READS, *_WRITES)]
        had = [any(group in one.rule.api_groups for one in rbac.grants(old, it)) for it in asked]
        has = [rbac.allows_in(new, it) for it in asked]
        reads = any(before and not after for before, after in zip(had[:3], has[:3], strict=True))
        how = [*(["read"] if reads else []), *(["write"] if any(had[3:]) and not any(has[3:]) else [])]
        if how:
            found.append(f"{' and '.join(how)} {resource}.{group}")
    return found


def _defined(facts: Facts) -> Iterator[tuple[str, str]]:
    for one in facts.content.manifests:
        if one.ref.group_kind == _CRD:
            spec = mapping(one.body.get("spec"))
            yield str(spec.get("group")), str(mapping(spec.get("names")).get("plural"))


def _elects(pod: PodSpec) -> bool:
    """Whether a container is told to elect a leader, as controllers of the usual frameworks are."""
    told = [str(one) for it in pod.containers() for key in ("command", "args") for one in items(it.body.get(key))]
    told += [f"{one.get('name')}={one.get('value')}" for it in pod.containers() for one in maps(it.body.get("env"))]
    words = (word.lower().replace("_", "-") for word in told)
    return any("leader-elect" in word and "=false" not in word for word in words)
