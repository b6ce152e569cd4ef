"""Events of Kubernetes about a BundleDeployment: where its request stands, and the address of its page.

Whoever may list events reads them, so they hold nothing of reports, reviews or what the API server said. Of a change
they say the ticket. Their namespace is `default`, which is that of objects without one. The same state again is one
more in the series of its event, no second event. Nothing depends on them: where Pratique may not write them, there are
none.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import socket
from datetime import datetime
from typing import Any

from approvals.clock import database_now
from approvals.lifecycle import State
from approvals.models import BundleDeployment, Request
from approvals.selectors import debts
from approvals.steps.mirroring.conditions import camel
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import AlreadyExists, PratiqueError, TryLater
from provisioner.escaping import visible
from provisioner.values import ObjectRef

logger = logging.getLogger(__name__)

API_VERSION = "events.k8s.io/v1"
NAMESPACE = "default"
FIELD_MANAGER = "pratique-events"
CONTROLLER = f"{OWN_GROUP}/pratique"
# As the API server has them; a note is counted in bytes.
MAX_NAME, MAX_NOTE, MAX_INSTANCE = 253, 1024, 128
SUFFIX = 16
# What an event that is ours has, however often it is told.
TOLD = ("reportingController", "regarding", "note", "reason")
BAD = frozenset({State.DENIED, State.FAILED, State.EXPIRED})


def tell(api: Api, deployment: BundleDeployment, request: Request, *, name: str, url: str) -> None:
    """Have an event say that `request`, mirrored as `name`, has come to its state; once for each time it does.

    One that could not be written is told by the next look at the request, if its state is still the same.
    """
    standing = f"{request.round} {request.state} {request.problem_code}"
    if standing == request.last_event:
        return
    event = event_of(deployment, request, name=name, url=url, now=database_now())
    try:
        _write_event(api, event)
    except PratiqueError as exc:
        logger.warning("an event was not written", extra={"cluster": deployment.cluster.name, "code": exc.code})
        if isinstance(exc, TryLater):
            return
    Request.objects.filter(pk=request.pk).update(last_event=standing)


def event_of(deployment: BundleDeployment, request: Request, *, name: str, url: str, now: datetime) -> dict[str, Any]:
    """The event of where `request` stands, named after that, so that it is the same one whenever it stands so again."""
    standing = f"{request.uid} {request.round} {request.state} {request.problem_code}"
    suffix = hashlib.sha256(standing.encode()).hexdigest()[:SUFFIX]
    words = f"{request.state.replace('_', ' ')}{f' ({request.problem_code})' if request.problem_code else ''}"
    ticket = f" for ticket {visible(request.change_ticket)}" if request.change_ticket else ""
    broken = debts.break_glass_of(request)
    glass = f" by break-glass of {broken.username} for incident {broken.incident}" if broken else ""
    about = {"apiVersion": f"{OWN_GROUP}/v1alpha2"}
    return {
        "apiVersion": API_VERSION,
        "kind": "Event",
        "metadata": {"name": f"{deployment.name[: MAX_NAME - len(suffix) - 1]}.{suffix}", "namespace": NAMESPACE},
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),  # metav1.MicroTime
        "reportingController": CONTROLLER,
        "reportingInstance": socket.gethostname()[:MAX_INSTANCE],
        "action": request.purpose.capitalize(),
        "reason": camel(request.problem_code) if request.problem_code else camel(request.state, "_"),
        "regarding": {**about, "kind": "BundleDeployment", "name": deployment.name, "uid": deployment.uid},
        "related": {**about, "kind": "BundleDeploymentRequest", "name": name},
        "note": f"Request {name}{ticket} is {words}{visible(glass)}: {url}".encode()[:MAX_NOTE].decode(errors="ignore"),
        "type": "Warning" if broken or request.state in BAD else "Normal",
    }


def _write_event(api: Api, event: dict[str, Any]) -> None:
    """Create the event, or count it once more in the series of one that is there already."""
    try:
        api.create(event, field_manager=FIELD_MANAGER)
    except AlreadyExists:
        live = api.get(ObjectRef.of(event)) or {}
        if any(live.get(part) != event[part] for part in TOLD):
            # Whoever may create events has taken the name, which anybody can work out.
            name = f"{event['metadata']['name'][:-SUFFIX]}{secrets.token_hex(SUFFIX // 2)}"
            api.create({**event, "metadata": {**event["metadata"], "name": name}}, field_manager=FIELD_MANAGER)
            return
        count = int((live.get("series") or {}).get("count") or 1) + 1
        series = {"count": count, "lastObservedTime": event["eventTime"]}
        known = {key: event[key] for key in ("apiVersion", "kind", "metadata")}
        api.merge({**known, "series": series}, field_manager=FIELD_MANAGER)
