"""The record of hooks, a port of the library, over our table: a run is written down before its object is (S20)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction

from approvals.gate.planning import hook_runs
from approvals.models import HookRun, Request
from provisioner.values import HookMoment, ObjectIdentity, ObjectRef
from provisioner.values import HookRun as Run


class DatabaseHookRuns:
    """The last run of each hook of a deployment, for `request`, which is being applied.

    `check_held` raises where the claim is another worker's now; it is asked in the transaction that records that a run
    begins, as for the inventory.
    """

    def __init__(self, request: Request, check_held: Callable[[], None]) -> None:
        self._request = request
        self._check_held = check_held

    def items(self) -> dict[ObjectIdentity, Run]:
        return hook_runs(self._request.deployment, current=self._request)

    @transaction.atomic(durable=True)
    def begin(self, ref: ObjectRef, moment: HookMoment, nonce: str) -> None:
        self._check_held()
        run = {"version": ref.version, "moment": moment, "nonce": nonce, "uid": "", "has_succeeded": False}
        about = {"deployment": self._request.deployment, **_identity(ref)}
        HookRun.objects.update_or_create(defaults={**run, "request": self._request}, **about)

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        self._change(ref, nonce, uid=uid)

    def succeed(self, ref: ObjectRef, nonce: str) -> None:
        self._change(ref, nonce, has_succeeded=True)

    def _change(self, ref: ObjectRef, nonce: str, **changes: object) -> None:
        """Only of the run with this nonce: nobody asks here whether the claim is another's now."""
        rows = HookRun.objects.filter(deployment_id=self._request.deployment_id, nonce=nonce, **_identity(ref))
        rows.update(**changes)


def _identity(ref: ObjectRef) -> dict[str, Any]:
    return {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
