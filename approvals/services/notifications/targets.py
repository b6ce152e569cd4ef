"""Saving notification targets, by people who may see all that is told (security-rules.md S53).

A target is told of clusters of which its writer may approve every BundleDeployment, as policies of the service need it.
Kubernetes is asked when the target is saved, about each cluster; whoever changes it later needs all of them as well.
Nobody else sees it: its address may be a secret.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction

from approvals import access, audit, wake
from approvals.access import Caller
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.deciding.selector import SEVERITIES
from approvals.errors import Changed, InvalidInput, NotAllowed, NotFound, NotOpen, Refused, TooMany
from approvals.events.kinds.table import TARGET_KINDS
from approvals.events.occasions import CHOSEN_TYPES, brief_type
from approvals.events.signed_post import BOTH_SIGN, TWICE, make_secret
from approvals.ledger import notifications
from approvals.locks import for_change
from approvals.models import Cluster, NotificationDelivery, NotificationTarget
from approvals.services.policies.rows import GLOB, NAME, check_author
from provisioner.api_groups import OWN_GROUP
from provisioner.source.egress import place_of
from provisioner.values import AccessRequest

MOST_TARGETS = 100
MOST_NAMED = 50
LONGEST_LABEL = 317  # of its key, with a prefix
_EVERYTHING = AccessRequest("approve", OWN_GROUP, "bundledeployments", name="")


def seen_clusters(*, by: Caller) -> list[Cluster]:
    """The clusters of which they may see, and so have sent, whatever happens; for pages, and asked afresh to save."""
    found = []
    for cluster, permission in access.read_answers(by):
        identity = access.find_identity(by, cluster).identity
        if permission.allowed and identity and not access.is_machine(identity):
            answers = access.ask_each(identity, cluster, [_EVERYTHING])
            found += [cluster] if answers[_EVERYTHING].allowed else []
    return found


def visible_targets(*, by: Caller) -> list[NotificationTarget]:
    """Those that they may change: every cluster that such a target is told of is one of theirs."""
    names = {cluster.name for cluster in seen_clusters(by=by)}
    there = {*Cluster.objects.values_list("name", flat=True)}
    return [
        target
        for target in NotificationTarget.objects.order_by("name")
        if (left := there.intersection(target.granted)) <= names and (left or target.changed_by == by.name)
    ]


def stoppable_targets(*, by: Caller) -> list[NotificationTarget]:
    """Those that they may not change but may stop: they may see all of one of its clusters. Another cluster that is
    silent, and a writer who has left, keep nobody from that. It shows what a target is called and its host, no more."""
    names, visible = {cluster.name for cluster in seen_clusters(by=by)}, visible_targets(by=by)
    others = NotificationTarget.objects.exclude(pk__in=[target.pk for target in visible]).order_by("name")
    return [target for target in others if names.intersection(target.granted)]


def host_of(target: NotificationTarget) -> str:
    """What of its address is no secret."""
    return str(place_of(target.address)) if target.address.startswith("http") else ""


def find_target(*, by: Caller, name: str, to_stop: bool = False) -> NotificationTarget:
    """Raises NotFound, which is the same where there is none and where they may not see it, or stop it."""
    there = [*visible_targets(by=by), *(stoppable_targets(by=by) if to_stop else ())]
    found: NotificationTarget | None = next((target for target in there if target.name == name), None)
    if found is None:
        raise NotFound("there is no such notification target, or you may not see it")
    return found


def save_target(
    *,
    by: Caller,
    name: str,
    kind: str,
    address: str,
    event_types: Sequence[str],
    clusters: Sequence[str],
    labels: Mapping[str, str],
    min_severity: str,
    is_active: bool,
    via: str,
    version: int,
) -> tuple[NotificationTarget, str]:
    """Create the target of this name, or change it; with the signing secret of a new one, which is shown this once, ""
    where its kind signs nothing. An address as it is shown stands for the one that is stored.

    `version` is the one that `by` has read, 0 for none. Raises Changed where somebody saved it meanwhile, else a
    Refused by what is wrong.
    """
    if not NAME.fullmatch(name):
        raise InvalidInput(f"the name is {name[:100]!r}; expected lowercase letters, digits and dashes", field="name")
    if kind not in TARGET_KINDS:
        words = f"the kind is {kind[:50]!r}; expected one of {', '.join(TARGET_KINDS)}"
        raise InvalidInput(words, field="kind")
    known, of_kind = NotificationTarget.objects.filter(name=name).first(), TARGET_KINDS[kind]
    if known and known.kind == kind and address == of_kind.show_address(known.address):
        address = known.address  # as it was shown, without what is secret in it
    of_kind.check_address(address)
    if unknown := [one for one in event_types if one not in (of_kind.event_types or CHOSEN_TYPES)]:
        about = ", ".join(map(brief_type, of_kind.event_types))
        expected = f": {of_kind.name} is told of {about}" if about else ""
        raise InvalidInput(f"{unknown[0][:100]!r} is no type of event{expected}", field="event_types")
    if min_severity and min_severity not in SEVERITIES:
        words = f"the severity is {min_severity[:50]!r}; expected one of {', '.join(SEVERITIES)}"
        raise InvalidInput(words, field="min_severity")
    _check_narrowing(clusters, labels)
    if known:
        _check_may_change(by, known)
    granted = _grant_clusters(by, clusters)
    columns = {
        "kind": kind,
        "address": address,
        "event_types": list(dict.fromkeys(event_types or of_kind.event_types)),
        "clusters": list(clusters),
        "granted": granted,
        "labels": dict(labels),
        "min_severity": min_severity,
    }
    try:
        return _save(by, via, version, name, is_active=is_active, columns=columns)
    except IntegrityError as exc:
        raise Changed(f"notification target {name} was created by someone else at the same moment: reload it") from exc


def stop_target(*, by: Caller, target: NotificationTarget, via: str) -> None:
    """Have nothing more sent to it of the clusters of which they may see all; without another one it is switched off.
    Once more changes nothing."""
    theirs = _clusters_to_stop(by, target)
    with transaction.atomic(durable=True):
        row = _locked(target)
        if row.is_active:
            left = [name for name in row.granted if name not in theirs]
            row.granted, row.version = left or row.granted, row.version + 1
            row.save(update_fields=["granted", "version"])
            if left:
                notifications.forget_ungranted(row)
            else:
                notifications.stop_target(row, f"{by.name} switched it off")
            facts = {"name": row.name, "active": row.is_active, "granted": row.granted}
            audit.record(verb="notification-target.changed", actor=Actor(by.name, via), facts=facts)


def delete_target(*, by: Caller, target: NotificationTarget, via: str) -> None:
    """Nothing more is sent to it, and what was sent is forgotten."""
    _check_may_change(by, target)
    with transaction.atomic(durable=True):
        _locked(target).delete()
        audit.record(verb="notification-target.deleted", actor=Actor(by.name, via), facts={"name": target.name})


def make_target_secret(*, by: Caller, target: NotificationTarget, via: str) -> str:
    """Make the secret that signs its events from now on, and return it: it is shown this once. The one before signs as
    well for a day."""
    _check_may_change(by, target)
    with transaction.atomic(durable=True):
        row = _locked(target)
        if not TARGET_KINDS[row.kind].signs:
            raise NotOpen(f"{row.name} has no signing secret: what is sent to {row.kind} is not signed")
        now = database_now()
        # A second click: nobody has installed what the first one made, and the one before that is still in use.
        if not (row.earlier_until and now - (row.earlier_until - BOTH_SIGN) < TWICE):
            row.earlier, row.earlier_until = row.secret, now + BOTH_SIGN
        row.secret = make_secret()
        row.save(update_fields=["secret", "earlier", "earlier_until"])
        facts = {"name": row.name}
        audit.record(verb="notification-target.secret-made", actor=Actor(by.name, via), facts=facts)
    return str(row.secret)


def send_test(*, by: Caller, target: NotificationTarget, via: str) -> NotificationDelivery:
    """Have an event sent to it that says nothing, once: what came of that is kept as of every other event."""
    _check_may_change(by, target)
    with transaction.atomic(durable=True):
        row = _locked(target)
        if not row.is_active:
            raise NotOpen(f"{row.name} is switched off: switch it on, and test it then")
        # Whatever it rests from, this is tried now.
        row.rests_until = None
        row.save(update_fields=["rests_until"])
        facts = {"kind": "NotificationTarget", "name": row.name}
        entry = audit.record(verb="notification-target.tested", actor=Actor(by.name, via), facts=facts)
        made = NotificationDelivery.objects.create(
            target=row, event_id=entry.number, subject=f"NotificationTarget/{row.name}", send_at=entry.at
        )
        wake.notifications(row.pk)
    return made


def send_again(*, by: Caller, target: NotificationTarget, delivery_id: int, via: str) -> NotificationDelivery:
    """Have an event sent that was given up. Raises NotOpen where it is not given up any more."""
    _check_may_change(by, target)
    with transaction.atomic(durable=True):
        row = _locked(target)
        delivery = NotificationDelivery.objects.filter(target=row, pk=delivery_id).select_related("event").first()
        if delivery is None:
            raise NotFound(f"{row.name} has no such delivery")
        if not row.is_active:
            raise NotOpen(f"{row.name} is switched off: switch it on, and send it again then")
        if not notifications.send_again(delivery):
            raise NotOpen("it was delivered, or is being sent: only what was given up is sent again")
        facts = {"name": row.name, "event": delivery.event_id}
        audit.record(verb="notification.sent-again", actor=Actor(by.name, via), facts=facts)
        wake.notifications(row.pk)
    delivery.refresh_from_db()
    return delivery


def _check_narrowing(clusters: Sequence[str], labels: Mapping[str, str]) -> None:
    if len(clusters) > MOST_NAMED or any(not 0 < len(one) <= 63 for one in clusters):
        words = f"clusters are at most {MOST_NAMED} names or globs of at most 63 characters"
        raise InvalidInput(words, field="clusters")
    too_long = any(not 0 < len(key) <= LONGEST_LABEL or len(value) > 63 for key, value in labels.items())
    if len(labels) > MOST_NAMED or too_long:
        raise InvalidInput(f"labels are at most {MOST_NAMED} labels as Kubernetes has them", field="labels")


def _check_may_change(by: Caller, target: NotificationTarget) -> None:
    """Raise NotFound unless they may see it, and a Refused where Kubernetes says no by now."""
    find_target(by=by, name=target.name)
    for cluster in Cluster.objects.filter(name__in=target.granted).order_by("name"):
        check_author(by, cluster, [])


def _clusters_to_stop(by: Caller, target: NotificationTarget) -> set[str]:
    """Those of its clusters of which they may have nothing more sent. Raises NotFound unless they may stop it, and a
    Refused where Kubernetes lets them see all of none of its clusters by now."""
    target = find_target(by=by, name=target.name, to_stop=True)
    gone = {*target.granted}.difference(Cluster.objects.values_list("name", flat=True))
    theirs, refusals = set[str](), list[Refused]()
    for cluster in seen_clusters(by=by):
        if cluster.name in target.granted:
            try:
                check_author(by, cluster, [])
            except Refused as refusal:
                refusals.append(refusal)
            else:
                theirs.add(cluster.name)
    if not theirs and gone != {*target.granted}:
        raise refusals[0] if refusals else NotFound("no cluster of the target lets you see what it is told of")
    return theirs | gone


def _grant_clusters(by: Caller, clusters: Iterable[str]) -> list[str]:
    """The clusters that the target is told of: those that are named, and of those that globs fit what Kubernetes lets
    `by` see. Raises a Refused where one that is named is not among them, where none is, and where nobody can tell.
    """
    wanted = list(clusters) or ["*"]
    readable: dict[str, Cluster] = {}
    for cluster, permission in access.read_answers(by):
        if any(fnmatch.fnmatchcase(cluster.name, glob) for glob in wanted):
            if not permission.could_ask:
                permission.check()
            readable |= {cluster.name: cluster} if permission.allowed else {}
    named = {name for name in clusters if not any(mark in name for mark in GLOB)}
    if missing := sorted(named - {*readable}):
        raise InvalidInput(f"{missing[0]} is no cluster that you may read", field="clusters")
    granted = []
    for name, cluster in sorted(readable.items()):
        try:
            check_author(by, cluster, [])
        except NotAllowed:
            if name in named:
                raise
        else:
            granted.append(name)
    if not granted:
        raise NotAllowed(
            "a target is told of what happens to every deployment: you need `approve` on every BundleDeployment of a "
            "cluster that it names"
        )
    return granted


@transaction.atomic(durable=True)
def _save(
    by: Caller, via: str, version: int, name: str, *, is_active: bool, columns: dict[str, Any]
) -> tuple[NotificationTarget, str]:
    now, secret = database_now(), ""
    row = for_change(NotificationTarget.objects.filter(name=name)).first()
    if (row.version if row else 0) != version:
        if not version:
            raise Changed(f"there is a notification target {name} already: choose another name")
        raise Changed(f"notification target {name} was changed by someone else since you opened it: reload it")
    columns |= {"changed_by": by.name, "changed_at": now}
    if row is None:
        if NotificationTarget.objects.count() >= MOST_TARGETS:
            raise TooMany(f"there are {MOST_TARGETS} notification targets already: delete one of them")
        secret = make_secret()
        row = NotificationTarget(name=name, created_by=by.name, created_at=now, is_active=is_active, secret=secret)
    else:
        row.version += 1
        # Another address may answer.
        row.failures, row.rests_until = 0, None
    for column, value in columns.items():
        setattr(row, column, value)
    notifications.forget_ungranted(row)
    if row.is_active and not is_active:
        notifications.stop_target(row, f"{by.name} switched it off")
    elif is_active:
        row.is_active, row.stopped_because = True, ""
    row.save()
    told = ("kind", "event_types", "clusters", "granted", "labels", "min_severity")
    facts = {"name": name, "host": host_of(row), "active": is_active, **{column: columns[column] for column in told}}
    verb = f"notification-target.{'created' if secret else 'changed'}"
    audit.record(verb=verb, actor=Actor(by.name, via), facts=facts)
    return row, secret if TARGET_KINDS[row.kind].signs else ""


def _locked(target: NotificationTarget) -> NotificationTarget:
    row = for_change(NotificationTarget.objects.filter(pk=target.pk)).first()
    if row is None:
        raise NotFound("the notification target was deleted")
    return row
