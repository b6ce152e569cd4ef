"""What a report is computed from, read from the cluster: live objects, roles, kinds, lists, and the installer's rights.

What the API server refuses is a gap that the report shows; that it does not answer at all is TryLater.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.cluster import evidence
from provisioner.cluster.client.access import ask_many
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import ClusterError, TryLater, UnknownKind
from provisioner.rbac import RbacSubject
from provisioner.review.base.facts import ClusterSurroundings, Facts, Gap, Installer, Listed, Listing, ServedKind
from provisioner.review.checks.objects.objects import find_untried_kinds
from provisioner.review.frame import listings, mentioned, questions
from provisioner.review.preflight.account_rights import PreflightFacts
from provisioner.review.preflight.answer import questions as questions_of
from provisioner.review.visibility.fact_views import hide_foreign_objects
from provisioner.values import AccessAnswer, AccessRequest, Identity, JsonObject, ObjectIdentity, ObjectRef, Section

PARALLEL = 8
# A permission that RBAC does not see may make another question needed; each round asks more of them.
ROUNDS = 8
# For a report; only what roles do not permit is asked, and an account that lacks this much lacks it by roles.
MAX_QUESTIONS = 200
_RBAC_KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_LIMITS = ("LimitRange", "ResourceQuota")
_ACCOUNT = "system:serviceaccount:"
_AGREES = "whether the API server agrees with its roles"
# What follows where the roles of the cluster are not known.
WITHOUT_ROLES = "so permissions are compared with the previous bundle only"
_Answers = dict[AccessRequest, AccessAnswer]


def live_objects(
    readers: tuple[ClusterClient, ...], refs: Sequence[ObjectRef]
) -> tuple[dict[ObjectIdentity, JsonObject | None], list[Gap]]:
    """The objects by identity, None where there is none; what nobody may read is a gap and has no entry."""
    live: dict[ObjectIdentity, JsonObject | None] = {}
    gaps: list[Gap] = []
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        for ref, found in zip(refs, pool.map(partial(_try_readers, readers), refs), strict=True):
            if isinstance(found, ClusterError):
                gaps.append(Gap(f"what {ref} is now", str(found), _section_of(ref)))
            else:
                live[ref.identity] = found
    return live, gaps


def _try_readers(readers: tuple[ClusterClient, ...], ref: ObjectRef) -> JsonObject | ClusterError | None:
    refusal: ClusterError | None = None
    for reader in readers:
        try:
            return reader.get(ref)
        except UnknownKind:
            return None
        except ClusterError as exc:
            refusal = refusal or exc
    return refusal


def kinds(cluster: ClusterClient, own_namespace: str) -> ClusterSurroundings:
    """What the cluster serves, in which version it runs, and where Pratique itself lives."""
    served = cluster.served()
    found = tuple(
        ServedKind(one.group, one.version, one.kind, one.plural, one.verbs, one.is_namespaced, one.other_names)
        for one in served.resources
    )
    unanswered = frozenset(group for group, _ in served.unknown)
    return ClusterSurroundings(found, unanswered, own_namespace=own_namespace, version=cluster.version())


def surroundings(readers: tuple[ClusterClient, ...], facts: Facts) -> ClusterSurroundings:
    """What checks ask to see beyond the objects that change; what could not be read says why."""
    queries = {_query(listing): listing for listing in listings(facts)}
    lists = {
        queries[query]: Listed(sample.objects, sample.total, sample.resource_version, sample.problem, sample.last)
        for query, sample in evidence.read_samples(readers, queries).items()
    }
    exists = {ref.identity: answer for ref, answer in evidence.find_existing(readers, mentioned(facts)).items()}
    schemas = evidence.published_schemas(readers, find_untried_kinds(facts))
    return replace(facts.around, lists=lists, exists=exists, schemas=schemas)


def _query(listing: Listing) -> evidence.Query:
    return evidence.Query(
        listing.group, listing.version, listing.kind, listing.namespace, listing.metadata_only, listing.is_counted
    )


def _section_of(ref: ObjectRef) -> Section:
    by_kind = {"CustomResourceDefinition": Section.CRDS, "Namespace": Section.PODS, "Service": Section.WEBHOOKS}
    return by_kind.get(ref.kind, Section.OBJECTS)


def live_rbac(readers: tuple[ClusterClient, ...]) -> tuple[tuple[JsonObject, ...] | None, list[Gap]]:
    """Every role and binding of the cluster; None where somebody may not list one of the four kinds."""
    refusal: ClusterError | None = None
    for reader in readers:
        try:
            return all_rbac(reader), []
        except ClusterError as exc:
            refusal = refusal or exc
    words = f"what everybody may do already, {WITHOUT_ROLES}"
    return None, [Gap(words, str(refusal), Section.PERMISSIONS)]


def ask_of_cluster(cluster: ClusterClient) -> None:
    """What is asked of a cluster for every report, whatever it is about: for `ClusterClient.noting`."""
    cluster.uid()
    cluster.version()
    for kind in _RBAC_KINDS:
        _all_of(cluster, kind)


def ask_of_namespace(cluster: ClusterClient, namespace: str) -> None:
    """The same of a namespace that objects go into."""
    evidence.read_samples((cluster,), [evidence.Query("", "v1", kind, namespace) for kind in _LIMITS])
    evidence.find_existing((cluster,), [ObjectRef("", "v1", "Namespace", "", namespace)])


def all_rbac(reader: ClusterClient) -> tuple[JsonObject, ...]:
    """Every role and binding of the cluster. Raises ClusterError where one of the four kinds may not be listed."""
    return tuple(obj for kind in _RBAC_KINDS for obj in _all_of(reader, kind))


def _all_of(reader: ClusterClient, kind: str, *, group: str = RBAC_GROUP) -> list[dict[str, Any]]:
    resource = reader.resource_of(group, "v1", kind)
    return list(reader.list(resource)) if resource else []


def namespaces(cluster: ClusterClient) -> tuple[frozenset[str] | None, list[Gap]]:
    """Every namespace; None where they may not be listed."""
    try:
        return frozenset(ObjectRef.of(one).name for one in _all_of(cluster, "Namespace", group="")), []
    except TryLater:
        raise
    except ClusterError as exc:
        return None, [Gap("which namespaces exist", str(exc), Section.PREFLIGHT)]


def installer(account: Identity | None) -> Installer | None:
    """Who will apply the content, of whom nothing was asked yet; None for anybody but a ServiceAccount."""
    username = account.username if account else ""
    namespace, _, name = username.removeprefix(_ACCOUNT).partition(":")
    is_account = username.startswith(_ACCOUNT) and bool(name)
    return Installer(RbacSubject("ServiceAccount", name, namespace)) if is_account else None


def with_rights(cluster: ClusterClient, facts: Facts) -> Facts:
    """`facts` with the API server's word on at most MAX_QUESTIONS rights that the installer's roles do not give it.

    First on what everybody is told of, as if no role of somebody else were there: what such a role gives decides
    nothing that is said to everybody (S09).
    """
    found = facts.installer
    if found is None:
        return facts

    def wanted(answers: _Answers) -> list[AccessRequest]:
        known = replace(facts, installer=replace(found, answers=answers))
        public = questions(hide_foreign_objects(known)) if known.bundle is not None else []
        return list(dict.fromkeys([*public, *questions(known)]))

    answers, gaps = _answered(cluster, found.account.identity, wanted, MAX_QUESTIONS)
    return replace(facts, installer=replace(found, answers=answers, gaps=tuple(gaps)))


def with_answers(cluster: ClusterClient, facts: PreflightFacts) -> PreflightFacts:
    """`facts` with the API server's word on everything that its roles do not permit."""

    def wanted(answers: _Answers) -> list[AccessRequest]:
        return questions_of(replace(facts, answers=answers))

    answers, gaps = _answered(cluster, facts.account.identity, wanted, None)
    return replace(facts, answers=answers, gaps=(*facts.gaps, *gaps))


def _answered(
    cluster: ClusterClient, account: Identity, wanted: Callable[[_Answers], list[AccessRequest]], at_most: int | None
) -> tuple[_Answers, list[Gap]]:
    """The answers to what is `wanted` beside those that are there, and why there are not more."""
    answers: _Answers = {}
    for _ in range(ROUNDS):
        asked = wanted(answers)
        now = asked if at_most is None else asked[: at_most - len(answers)]
        if not asked:
            break
        try:
            answers |= ask_many(cluster, account, now)
        except TryLater:
            raise
        except ClusterError as exc:
            return answers, [Gap(_AGREES, str(exc), Section.PREFLIGHT)]
        if len(now) < len(asked):
            words = f"it was asked about {len(answers)} missing rights, and not about the rest"
            return answers, [Gap(_AGREES, words, Section.PREFLIGHT)]
    return answers, []
