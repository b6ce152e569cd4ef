"""Which catalogues somebody may read: that is `get catalogs/<name>`, whatever else they may read there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from approvals import models
from approvals.access.caller import Caller
from approvals.access.identity import FoundIdentity, find_identity
from approvals.access.questions import Permission, Question, ask_all, may
from provisioner.api_groups import OWN_GROUP
from provisioner.values import AccessRequest

RESOURCE = "catalogs"


@dataclass(frozen=True, slots=True)
class ReadableCatalogs:
    """The keys of those that the caller may read, and what was answered where they are somebody, a cluster each."""

    keys: frozenset[int]
    answers: tuple[tuple[models.Cluster, Permission], ...]


def catalog_question(name: str = "") -> AccessRequest:
    """The question that reading a catalogue of this name hangs on; without a name, that of every catalogue."""
    return AccessRequest("get", OWN_GROUP, RESOURCE, name=name)


def may_read_catalog(caller: Caller, catalog: models.Catalog, *, fresh: bool = False) -> Permission:
    return may(caller, catalog.cluster, "get", resource=RESOURCE, name=catalog.name, fresh=fresh)


def readable_catalogs(caller: Caller) -> ReadableCatalogs:
    """Of all clusters where the caller proved who they are; all are asked at once."""
    proved = [proof.cluster_id for proof in caller.proofs]
    clusters = list(models.Cluster.objects.filter(pk__in=proved).order_by("name")) if proved else []
    found = {cluster.pk: find_identity(caller, cluster) for cluster in clusters}
    known = [cluster for cluster in clusters if found[cluster.pk].identity]
    asked = [Question(one, cluster, catalog_question()) for cluster in known if (one := found[cluster.pk].identity)]
    answers = {one.cluster.pk: answer for one, answer in zip(asked, ask_all(asked), strict=True)}
    for cluster in clusters:
        if cluster.pk not in answers:
            refusal = found[cluster.pk].refusal
            answers[cluster.pk] = Permission(False, str(refusal), refused=refusal)
    everything = [cluster for cluster in known if answers[cluster.pk].allowed]
    keys = set(models.Catalog.objects.filter(cluster__in=everything).values_list("pk", flat=True))
    for row, answer in _by_name([one for one in known if one not in everything], found):
        if answer.allowed:
            keys.add(row.pk)
        elif not answer.could_ask:
            answers[row.cluster_id] = answer
    return ReadableCatalogs(frozenset(keys), tuple((one, answers[one.pk]) for one in clusters))


def _by_name(
    clusters: Sequence[models.Cluster], found: Mapping[int, FoundIdentity]
) -> list[tuple[models.Catalog, Permission]]:
    """Each catalogue of clusters on which not every one may be read."""
    rows = models.Catalog.objects.filter(cluster__in=clusters).select_related("cluster").order_by("pk")
    asked = [
        (row, Question(one, row.cluster, catalog_question(row.name)))
        for row in rows
        if (one := found[row.cluster_id].identity)
    ]
    answers = ask_all([question for _, question in asked])
    return [(row, answer) for (row, _), answer in zip(asked, answers, strict=True)]
