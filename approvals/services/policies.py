"""Saving policies: type-checked, and by people who may approve what they select (security.md S13)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from django.db import transaction
from django.utils import timezone

from approvals import access, audit, wake
from approvals.access import Caller
from approvals.audit import Actor
from approvals.errors import Changed, CouldNotAsk, InvalidInput, NotAllowed
from approvals.ledger.locks import for_change
from approvals.lifecycle import State
from approvals.models import Cluster, Policy, Request
from approvals.policy import POLICY, BadExpression, check_compiled, check_form
from provisioner.expressions.evaluator import ask
from provisioner.values import AccessRequest

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
GLOB = "*?["


def save_policy(
    *,
    by: Caller,
    name: str,
    kind: str,
    mode: str,
    cluster: Cluster,
    names: Sequence[str],
    labels: Mapping[str, str],
    expression: str,
    message: str,
    is_active: bool,
    via: str,
) -> Policy:
    """Create the policy of this name, or save a new version of it, for which `by` needs the right to both.

    Raises Changed where somebody saved it meanwhile, else a Refused by what is wrong.
    """
    _check(name, kind, mode, expression)
    known = Policy.objects.select_related("cluster").filter(name=name).first()
    if known:
        for each in [known.cluster] if known.cluster else Cluster.objects.order_by("name"):
            _check_author(by, each, known.names)
    _check_author(by, cluster, names)
    return _save(
        by,
        via,
        known.version if known else 0,
        name=name,
        kind=kind,
        mode=mode,
        cluster=cluster,
        names=list(names),
        labels=dict(labels),
        expression=expression,
        message=message,
        is_active=is_active,
    )


def _check(name: str, kind: str, mode: str, expression: str) -> None:
    if not NAME.fullmatch(name):
        raise InvalidInput(f"the name is {name!r}; expected small letters, digits and dashes", field="name")
    if kind not in Policy.Kind.values:
        raise InvalidInput(f"the kind is {kind!r}; expected one of {', '.join(Policy.Kind.values)}", field="kind")
    if mode not in Policy.Mode.values:
        raise InvalidInput(f"the mode is {mode!r}; expected one of {', '.join(Policy.Mode.values)}", field="mode")
    try:
        check_form(expression)
        check_compiled(ask(POLICY, [expression])[0])
    except BadExpression as exc:
        raise InvalidInput(f"the expression does not hold: {exc}", field="expression") from exc


def _check_author(by: Caller, cluster: Cluster, names: Sequence[str]) -> None:
    """Who writes a policy must hold `approve` on all that it selects: on every name, or on each plain name listed."""
    identity = access.acting_as(by, cluster)
    if access.is_machine(identity):
        raise NotAllowed(f"{identity.username} is a machine account or a cluster master, and those do not vote")
    is_listed = names and not any(mark in name for name in names for mark in GLOB)
    for name in names if is_listed else [""]:
        question = AccessRequest("approve", "core.rukpak.io", "bundledeployments", name=name)
        permission = access.ask_for(identity, cluster, question, fresh=True)
        if not permission.could_ask:
            raise CouldNotAsk(permission.words)
        if not permission.allowed:
            what = f"BundleDeployment {name}" if name else "every BundleDeployment of the cluster"
            raise NotAllowed(
                f"a policy may approve only what its author may: you need `approve` on {what}", rule=permission.rule
            )


@transaction.atomic(durable=True)
def _save(by: Caller, via: str, known_version: int, *, name: str, **columns: object) -> Policy:
    now = timezone.now()
    policy = for_change(Policy.objects.filter(name=name)).first()
    if (policy.version if policy else 0) != known_version:
        raise Changed(f"policy {name} was saved by somebody else meanwhile: look at it again")
    if policy is None:
        policy = Policy.objects.create(
            name=name, **columns, author=by.user, editor=by.user, created_at=now, changed_at=now
        )
    else:
        for column, value in columns.items():
            setattr(policy, column, value)
        policy.version += 1
        policy.editor = by.user
        policy.changed_at = now
        policy.save()
    for pk in Request.objects.filter(state__in=(State.IN_REVIEW, State.APPROVED)).values_list("pk", flat=True):
        wake.request(pk)
    audit.record(
        verb="policy.saved",
        actor=Actor(by.name, via),
        facts={
            **columns,
            "name": name,
            "version": policy.version,
            "cluster": policy.cluster.name if policy.cluster else "",
        },
    )
    return policy
