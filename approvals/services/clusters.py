"""Registering a cluster (security.md S19)."""

from __future__ import annotations

import re

from django.db import transaction
from django.utils import timezone

from approvals import access, audit
from approvals.audit import Actor
from approvals.errors import InvalidInput
from approvals.models import Cluster
from provisioner.errors import BadSource

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def register_cluster(*, name: str, kubeconfig: str, by: Actor, context: str = "", may_replace: bool = False) -> Cluster:
    """Add a cluster, or with `may_replace` give a known one a new kubeconfig.

    Its uid is read at the first contact and then kept. `kubeconfig` is a text, or "" for the cluster that Pratique runs
    in; only what `context` uses is kept of it. Raises InvalidInput for a bad name, for a kubeconfig that may not
    register a cluster, and for a known name with another kubeconfig: it may be a slip.
    """
    if not NAME.fullmatch(name):
        raise InvalidInput(f"the name is {name!r}; expected at most 63 small letters, digits and dashes", field="name")
    try:
        kept = access.kubeconfig_to_keep(name, kubeconfig, context=context) if kubeconfig else ""
    except BadSource as exc:
        raise InvalidInput(str(exc), field="kubeconfig") from exc
    return _registered(name, kept, by, may_replace=may_replace)


@transaction.atomic(durable=True)
def _registered(name: str, kubeconfig: str, by: Actor, *, may_replace: bool) -> Cluster:
    cluster, is_new = Cluster.objects.get_or_create(
        name=name, defaults={"kubeconfig": kubeconfig, "created_at": timezone.now()}
    )
    if not is_new and cluster.kubeconfig == kubeconfig:
        return cluster
    if not is_new and not may_replace:
        raise InvalidInput(f"cluster {name} is registered already, with another kubeconfig", field="may_replace")
    cluster.kubeconfig = kubeconfig
    cluster.save(update_fields=["kubeconfig"])
    audit.record(verb="cluster.registered", actor=by, facts={"cluster": name, "new": is_new})
    return cluster
