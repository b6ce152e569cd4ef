"""What stays behind when a deployment takes over a Helm release: marked objects that the content does not have.

The record of the release would name them all, but it holds the values of its Secrets, too, so nobody reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.escaping import visible
from provisioner.json_values import mapping, value_at
from provisioner.review.base.facts import SECRET, Check, Facts, Listed, Listing, ReviewRule
from provisioner.values import Action, Finding, GroupKind, HelmRelease, ObjectRef, Section, Severity

_LEFT = ReviewRule("HELM-01", Section.OBJECTS, Severity.NOTABLE)
_UNKNOWN = ReviewRule("HELM-01", Section.OBJECTS, Severity.UNKNOWN)
_ABSENT = ReviewRule("HELM-03", Section.OBJECTS, Severity.DANGEROUS)
_NOT_LISTED = ReviewRule("HELM-03", Section.OBJECTS, Severity.UNKNOWN)
_NAME, _NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
# What charts are made of. Of other kinds those are looked at that the content has.
_KINDS = (
    *(GroupKind("", kind) for kind in ("ConfigMap", "PersistentVolumeClaim", "Secret", "Service", "ServiceAccount")),
    *(GroupKind("apps", kind) for kind in ("DaemonSet", "Deployment", "StatefulSet")),
    *(GroupKind("batch", kind) for kind in ("CronJob", "Job")),
    *(GroupKind("networking.k8s.io", kind) for kind in ("Ingress", "NetworkPolicy")),
    *(GroupKind(RBAC_GROUP, kind) for kind in ("Role", "RoleBinding")),
    GroupKind("autoscaling", "HorizontalPodAutoscaler"),
    GroupKind("policy", "PodDisruptionBudget"),
)


def list_marked_kinds(facts: Facts) -> Iterator[Listing]:
    """In the namespace of a release that is taken over; of kinds without a namespace everywhere."""
    for release in taken_over(facts):
        in_cluster = {one.ref.group_kind for one in facts.content.everything if not one.ref.namespace}
        kinds = {*_KINDS, *(one.ref.group_kind for one in facts.content.everything)}
        for kind in sorted(kinds):
            place = "" if kind in in_cluster else release.namespace
            yield Listing(kind.group, "", kind.kind, place, metadata_only=True)


def compare_releases(facts: Facts) -> Iterator[Finding]:
    known = {manifest.ref.identity for manifest in facts.content.everything}
    for release in taken_over(facts):
        left: list[ObjectRef] = []
        unread: list[str] = []
        for listing in list_marked_kinds(facts):
            listed = facts.around.lists.get(listing, Listed(problem="nobody asked"))
            if not listed.is_whole:
                unread.append(listing.kind)
            for obj in listed.objects:
                marks = mapping(value_at(obj, "metadata", "annotations"))
                is_marked = (marks.get(_NAME), marks.get(_NAMESPACE)) == (release.name, release.namespace)
                if is_marked and ObjectRef.of(obj).identity not in known:
                    left.append(ObjectRef.of(obj))
        if left:
            yield _LEFT.finding("left", None, key=sorted(map(str, left)), release=release.name, objects=sorted(left))
        if unread:
            yield _UNKNOWN.finding("unread", None, key=unread, release=release.name, kinds=unread)


def taken_over(facts: Facts) -> list[HelmRelease]:
    """The releases whose records go."""
    going = (planned.ref for planned in facts.plan.actions if planned.action is Action.DELETE)
    releases = {release for ref in going if (release := HelmRelease.of_record(ref))}
    return sorted(releases, key=lambda release: (release.name, release.namespace))


def _wanted_in_vain(facts: Facts) -> HelmRelease | None:
    """The release that is to be taken over, where the plan takes over nothing."""
    is_adopting = any(planned.action is Action.ADOPT and not planned.problem for planned in facts.plan.actions)
    return None if is_adopting or taken_over(facts) else facts.helm_release


def list_records(facts: Facts) -> Iterator[Listing]:
    if release := _wanted_in_vain(facts):
        yield Listing(SECRET.group, "", SECRET.kind, release.namespace, metadata_only=True)


def compare_wanted_release(facts: Facts) -> Iterator[Finding]:
    """Find a release that is to be taken over and is not there, with those that are."""
    release = _wanted_in_vain(facts)
    if release is None:
        return
    (listing,) = list_records(facts)
    listed = facts.around.lists.get(listing, Listed(problem="nobody asked"))
    found = {record.name for obj in listed.objects if (record := HelmRelease.of_record(ObjectRef.of(obj)))}
    params: dict[str, Any] = {"release": visible(release.name), "namespace": release.namespace}
    if release.name in found:
        yield _ABSENT.finding("holds-nothing", None, key=release.name, **params)
    elif not listed.is_whole:
        yield _NOT_LISTED.finding("not-listed", None, key=release.name, **params)
    else:
        names = sorted(map(visible, found)) or None
        yield _ABSENT.finding("absent", None, key=release.name, found=names, **params)


CHECK = Check("Helm releases", changes=compare_releases, lists=list_marked_kinds)
WANTED_CHECK = Check("the Helm release to take over", changes=compare_wanted_release, lists=list_records)
