"""Registering a cluster, and removing it (security-rules.md S19)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from approvals import access, audit
from approvals.audit import Actor
from approvals.catalogs.schedule import forget_catalog
from approvals.clock import database_now
from approvals.errors import CouldNotAsk, InvalidInput, KeyMissing, NotFound
from approvals.ledger import pivots
from approvals.ledger.deciding import policy_rows
from approvals.locks import for_change
from approvals.models import BundleComparison, BundleDeployment, Catalog, Cluster
from approvals.services import identity
from provisioner.errors import BadSource, PratiqueError

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,251}[A-Za-z0-9])?", re.ASCII)
MOST_LABELS = 20


@dataclass(frozen=True, slots=True)
class Replacing:
    """That a registered cluster is to be given another kubeconfig.

    `uid` is the operator's word for the uid of its namespace kube-system, where the kubeconfig may not read it.
    """

    uid: str = ""


@dataclass(frozen=True, slots=True)
class Uids:
    """What was read of kube-system by the new and the old kubeconfig, and what was said of it; "": nobody knows."""

    new: str
    old: str
    said: str


def register_cluster(
    *, name: str, kubeconfig: str, by: Actor, context: str = "", replacing: Replacing | None = None
) -> Cluster:
    """Add a cluster, or with `replacing` give a known one a new kubeconfig, which must lead to the same cluster.

    `kubeconfig` is a text, or "" for the cluster that Pratique runs in; only what `context` uses is kept of it. A
    cluster is known by the uid of its namespace kube-system. That is read now, or of a new cluster that does not answer
    at the first contact, and then kept. One that was removed is registered again as itself, never as another one: what
    was kept of it has its name.

    Raises InvalidInput for a bad name, for a kubeconfig that may not register a cluster, for a known name with another
    kubeconfig (it may be a slip) and for another cluster; CouldNotAsk where nobody can tell which cluster it is.
    """
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"the name is {name!r}; expected at most 63 lowercase letters, digits and dashes", field="name"
        )
    try:
        kept = access.kubeconfig_to_keep(name, kubeconfig, context=context) if kubeconfig else ""
    except BadSource as exc:
        raise InvalidInput(str(exc), field="kubeconfig") from exc
    known = Cluster.every.filter(name=name).first()
    if known and known.removed_at and replacing is None:
        replacing = Replacing()
    before = _kubeconfig_of(known, replacing) if known else None
    if known and before == kept and known.removed_at is None:
        return known
    if known and replacing is None:
        raise _taken(name)
    found = _read_uid(name, kept)
    if known is None or replacing is None:
        return _add(name, kept, _told(found), by)
    if isinstance(found, PratiqueError) and not replacing.uid and (known.uid or known.removed_at is None):
        raise CouldNotAsk(
            f"cannot verify that this is cluster {name}: the new kubeconfig could not read the uid of the "
            f"namespace kube-system: {found}. Use a kubeconfig that can read it, or pass the uid that `kubectl "
            f"get namespace kube-system -o jsonpath={{.metadata.uid}}` prints there"
        )
    old = known.uid or ("" if known.removed_at else _told(_read_uid(name, before or "")))
    return _replace(known.pk, kept, Uids(_told(found), old, replacing.uid), by)


def _kubeconfig_of(known: Cluster, replacing: Replacing | None) -> str | None:
    """None where its key is lost and it is to be replaced: the uid, not encrypted, says which cluster it is."""
    try:
        kubeconfig: str = known.kubeconfig
    except KeyMissing:
        if replacing is None or not known.uid:
            raise
        return None
    return kubeconfig


def _taken(name: str) -> InvalidInput:
    return InvalidInput(f"cluster {name} is already registered with another kubeconfig", field="may_replace")


def _told(found: str | PratiqueError) -> str:
    return "" if isinstance(found, PratiqueError) else found


def _read_uid(name: str, kubeconfig: str) -> str | PratiqueError:
    """The uid of the cluster's namespace kube-system, or why nobody knows it."""
    try:
        return access.kubernetes().uid_behind(name, kubeconfig)
    except PratiqueError as exc:
        return exc


@transaction.atomic(durable=True)
def _add(name: str, kubeconfig: str, uid: str, by: Actor) -> Cluster:
    _check_uid_is_free(name, uid)
    facts = {"kubeconfig": kubeconfig, "uid": uid or None, "created_at": database_now()}
    cluster, is_new = Cluster.objects.get_or_create(name=name, defaults=facts)
    if not is_new and cluster.kubeconfig != kubeconfig:
        raise _taken(name)
    if is_new:
        policy_rows.keep_built_in(cluster)
        audit.record(verb="cluster.registered", actor=by, facts={"cluster": name, "new": True})
    return cluster


@transaction.atomic(durable=True)
def _replace(key: int, kubeconfig: str, uids: Uids, by: Actor) -> Cluster:
    cluster = for_change(Cluster.every.filter(pk=key)).get()
    expected = cluster.uid or uids.old
    for uid in (uids.new, uids.said):
        if uid and expected and uid != expected:
            raise InvalidInput(
                f"this is a different cluster: its namespace kube-system has uid {uid}, and that of "
                f"{cluster.name} is {expected}. The people, policies and requests of {cluster.name} do not "
                "apply to it: register it under a new name",
                field="kubeconfig",
            )
    if cluster.uid is None:
        # Only what was read: a slip in the operator's word would keep the right cluster out for good.
        _check_uid_is_free(cluster.name, expected or uids.new)
        cluster.uid = expected or uids.new or None
    facts = {"cluster": cluster.name, "new": cluster.removed_at is not None}
    cluster.kubeconfig, cluster.removed_at = kubeconfig, None
    cluster.save(update_fields=["kubeconfig", "uid", "removed_at"])
    audit.record(verb="cluster.registered", actor=by, facts=facts)
    return cluster


@transaction.atomic(durable=True)
def label_cluster(*, cluster: Cluster, changes: Sequence[str], by: Actor) -> dict[str, str]:
    """Set labels (`key=value`) and remove others (`key-`); all labels that it has then. Raises InvalidInput."""
    row = for_change(Cluster.objects.filter(pk=cluster.pk)).get()
    labels: dict[str, str] = dict(row.labels)
    for change in changes:
        key, is_set, value = change.partition("=")
        if not is_set and key.endswith("-") and LABEL.fullmatch(key[:-1]):
            labels.pop(key[:-1], None)
        elif is_set and LABEL.fullmatch(key) and (not value or LABEL.fullmatch(value)):
            labels[key] = value
        else:
            raise InvalidInput(f"{change[:80]!r} is no label; expected KEY=VALUE or KEY-", field="labels")
    if len(labels) > MOST_LABELS:
        raise InvalidInput(f"{len(labels)} labels; at most {MOST_LABELS} are kept", field="labels")
    row.labels = labels
    row.save(update_fields=["labels"])
    audit.record(verb="cluster.labelled", actor=by, facts={"cluster": row.name, "labels": labels})
    return labels


def remove_cluster(*, cluster: Cluster, by: Actor) -> list[BundleDeployment]:
    """Forget how to reach the cluster, and end all that is asked for there; the deployments that it had.

    Nothing is asked of the cluster, and what was applied stays there. Requests with their reviews and verdicts,
    revisions and the audit stay here; reports and content go when PRATIQUE_KEEP_DAYS lets them go, as for a deployment
    that is gone. Raises Busy while a worker writes to the cluster, NotFound where it was removed already.
    """
    deployments = _remove(cluster, by)
    for uid in list(Catalog.objects.filter(cluster=cluster).values_list("uid", flat=True)):
        forget_catalog(cluster=cluster, uid=uid)
    BundleComparison.objects.filter(cluster=cluster).delete()
    return deployments


@transaction.atomic(durable=True)
def _remove(cluster: Cluster, by: Actor) -> list[BundleDeployment]:
    row = for_change(Cluster.objects.defer("kubeconfig").filter(pk=cluster.pk)).first()
    if row is None:
        raise NotFound(f"cluster {cluster.name} was removed already")
    deployments = pivots.forget_all(cluster=row, actor=by)
    identity.forget_all(cluster=row, by=by)
    row.kubeconfig, row.credentials_end, row.removed_at = "", None, database_now()
    row.problem = row.refusal = row.refused_by = row.watched_by = ""
    row.watched_until = None
    row.save()
    names = [one.name for one in deployments]
    audit.record(verb="cluster.removed", actor=by, facts={"cluster": row.name, "uid": row.uid, "deployments": names})
    return deployments


def _check_uid_is_free(name: str, uid: str) -> None:
    """A cluster that had two names would have two requests for one change."""
    other = Cluster.every.filter(uid=uid).exclude(name=name).first() if uid else None
    if other and other.removed_at:
        raise InvalidInput(
            f"that cluster was registered as {other.name}, and removed: register it as {other.name} again, so that its "
            "requests and its audit stay one",
            field="name",
        )
    if other:
        raise InvalidInput(f"that cluster is already registered as {other.name}", field="kubeconfig")
