"""Which catalogs somebody may read: that is `get catalogs/<name>`, whatever else they may read there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from approvals import models
from approvals.access.caller import Caller
from approvals.access.identity import FoundIdentity, find_identity
from approvals.access.questions import Permission, Question, ask_all, may
from provisioner.api_groups import OWN_GROUP
from provisioner.values import AccessRequest

RESOURCE = "catalogs"
# Of those who may not get every catalog so many are asked about by name, over all clusters.
MOST_ASKED = 50


@dataclass(frozen=True, slots=True)
class ReadableCatalogs:
    """The keys of those that the caller may read, and what was answered where they are somebody, a cluster each."""

    keys: frozenset[int]
    answers: tuple[tuple[models.Cluster, Permission], ...]


def catalog_question(name: str = "") -> AccessRequest:
    """The question that reading a catalog of this name hangs on; without a name, that of every catalog."""
    return AccessRequest("get", OWN_GROUP, RESOURCE, name=name)


def may_read_catalog(caller: Caller, cluster: models.Cluster, name: str) -> Permission:
    """Whether the caller may read the catalog of this name, whether there is one or not."""
    return may(caller, cluster, "get", resource=RESOURCE, name=name)


def readable_catalogs(caller: Caller) -> ReadableCatalogs:
    """Of all clusters where the caller proved who they are; all are asked at once.

    The answer of a cluster is that nobody could ask where catalogs are left out, because there are too many to ask
    about each.
    """
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
    """The first catalogs of clusters on which not every one may be read, of each cluster as many."""
    rows = models.Catalog.objects.only("name", "cluster").order_by("name")
    listed = [[(cluster, row) for row in rows.filter(cluster=cluster)[: MOST_ASKED + 1]] for cluster in clusters]
    turns = [each for turn in zip_longest(*listed) for each in turn if each]
    asked = [
        (row, Question(one, cluster, catalog_question(row.name)))
        for cluster, row in turns[:MOST_ASKED]
        if (one := found[cluster.pk].identity)
    ]
    answers = ask_all([question for _, question in asked])
    unasked = [(row, _unasked(found[cluster.pk])) for cluster, row in turns[MOST_ASKED:]]
    return [*((row, answer) for (row, _), answer in zip(asked, answers, strict=True)), *unasked]


def _unasked(who: FoundIdentity) -> Permission:
    words = f"you may not get every Catalog, and only {MOST_ASKED} are asked about by name: read others by their names"
    return Permission(False, words, identity=who.identity, could_ask=False)
