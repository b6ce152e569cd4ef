"""What there is afterwards, without what differs from run to run: two runs that went alike find the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from approvals.audit import verify_chain
from approvals.models import AuditEntry, BundleDeployment, OptionalObject, Request
from provisioner.values import ObjectRef
from tests.chaos.draw import Scenario
from tests.chaos.scenarios import WIDGETS
from tests.support.kubernetes.endpoint import Endpoint, Refused
from tests.support.patience import wait_for

VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "annotations", "selfLink")
# Every kind that the bundles hold: an orphan is one of these.
KINDS = ("api/v1 configmaps", "api/v1 serviceaccounts", "api/v1 services", "apis/apps/v1 deployments")
OF_NO_NAMESPACE = (f"apis/{WIDGETS}/v1 widgets",)
# Kubernetes' own, made and written when its controllers come by.
OF_THE_CLUSTER = ("configmaps kube-root-ca.crt", "serviceaccounts default")
CONTROLLERS = "kube-controller-manager"
CUSTOM = "/apis/core.rukpak.io/v1alpha2"


def uids(endpoint: Endpoint, namespace: str) -> dict[str, str]:
    """Of every object in the namespace, to tell afterwards which one is still the same."""
    return {key: str(obj["metadata"]["uid"]) for key, obj in live_objects(endpoint, namespace).items()}


def found(scenario: Scenario, endpoint: Endpoint, request: Request, before: Mapping[str, str]) -> dict[str, Any]:
    """The request, its revisions and audit, every object of its namespace, and whose each of them is by the records.

    `before` is what `uids` were when it was approved.
    """
    request.refresh_from_db()
    deployment = BundleDeployment.objects.get(pk=request.deployment_id)
    namespace = str(request.spec["installNamespace"])
    live = live_objects(endpoint, namespace)
    verbs = AuditEntry.objects.filter(request_uid=str(request.uid)).order_by("number").values_list("verb", flat=True)
    everything = {
        "scenario": scenario,
        "requests": list(deployment.requests.order_by("number").values_list("purpose", "state", "problem_code")),
        "problem": request.problem,
        "server words": list(
            request.outcomes.filter(state="failed").order_by("step", "object").values_list("object", "server_words")
        ),
        "revisions": list(deployment.revisions.order_by("number").values_list("number", "state")),
        "active": deployment.active_revision and deployment.active_revision.number,
        "is_gone": deployment.gone_at is not None,
        "objects": {key: _meaning(obj) for key, obj in live.items()},
        "is_same": {key: obj["metadata"]["uid"] == before[key] for key, obj in live.items() if key in before},
        "inventory": _inventory(deployment, live),
        "left out": list(
            OptionalObject.objects.filter(revision__request=request).values_list("name", "state", "problem")
        ),
        "planned": _planned(request),
        "audit": list(verbs),
        "is_chain_whole": verify_chain().is_whole,
        "wish": _wish(endpoint, deployment),
        # Mirrors go with the wish that owns them, when the garbage collector comes by.
        "mirror": None if deployment.gone_at else _mirror(endpoint, f"{deployment.name}-{request.number}"),
    }
    return dict(json.loads(json.dumps(everything, sort_keys=True).replace(namespace, "NS")))


def live_objects(endpoint: Endpoint, namespace: str) -> dict[str, dict[str, Any]]:
    live = {}
    places = [(kind, f"/namespaces/{namespace}") for kind in KINDS] + [(kind, "") for kind in OF_NO_NAMESPACE]
    for kind, place in places:
        group, plural = kind.split()
        listed = _asked(endpoint, f"/{group}{place}/{plural}") or {}
        for obj in listed.get("items", ()):
            live[f"{plural} {obj['metadata']['name']}"] = obj
    return {key: obj for key, obj in live.items() if key not in OF_THE_CLUSTER}


def _planned(request: Request) -> dict[str, str]:
    """What the approved plan does to each object."""
    actions = request.reports.get(round=request.round).body["plan"]["actions"]
    return {f"{one['ref']['kind']} {one['ref']['name']}": one["action"] for one in actions}


def _inventory(deployment: BundleDeployment, live: dict[str, dict[str, Any]]) -> dict[str, bool]:
    """Of what the records say is ours, whether it is there and the same object."""
    return {
        f"{ref.kind.lower()}s {ref.name}": live.get(f"{ref.kind.lower()}s {ref.name}", {})
        .get("metadata", {})
        .get("uid")
        == row.uid
        for row in deployment.inventory.order_by("kind", "name")
        for ref in [ObjectRef.from_parts(row)]
    }


def _meaning(obj: dict[str, Any]) -> dict[str, Any]:
    """Its managers and its generation stay: they tell whether it was written once."""
    meta = obj["metadata"]
    entries = [entry for entry in meta.get("managedFields") or () if not entry.get("subresource")]
    managers = sorted({entry["manager"] for entry in entries} - {CONTROLLERS})
    kept = {key: value for key, value in meta.items() if key not in VOLATILE}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": kept, "managers": managers}


def _wish(endpoint: Endpoint, deployment: BundleDeployment) -> dict[str, Any] | None:
    live = _asked(endpoint, f"{CUSTOM}/bundledeployments/{deployment.name}")
    if live is None:
        return None
    status = {key: value for key, value in (live.get("status") or {}).items() if key != "conditions"}
    # The digest covers the namespace, which is another one in every run on a real cluster.
    said, active = status.pop("contentDigest", ""), deployment.active_revision
    is_true = said == (active.content_id if active else "")
    return {"finalizers": live["metadata"].get("finalizers") or [], "status": status, "is_digest_true": is_true}


def _mirror(endpoint: Endpoint, name: str) -> str | None:
    live = _asked(endpoint, f"{CUSTOM}/bundledeploymentrequests/{name}")
    return str((live.get("status") or {}).get("state")) if live else None


def _asked(endpoint: Endpoint, path: str) -> dict[str, Any] | None:
    """None where it is not there. A server that has just started may say 429 of what it does not serve yet."""

    def look() -> dict[str, Any] | Refused | None:
        try:
            return dict(endpoint.ask("GET", path))
        except Refused as exc:
            if exc.status == 404:
                return None
            if exc.status != 429:
                raise
            return exc

    found = wait_for(look, f"GET {path}", is_so=lambda it: not isinstance(it, Refused))
    assert not isinstance(found, Refused)
    return found


def differences(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """What was found that was not expected, by its path."""
    told: dict[str, Any] = {}
    for key in sorted(found.keys() | expected.keys()):
        ours, theirs = found.get(key), expected.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            told |= {f"{key}: {path}": value for path, value in differences(ours, theirs).items()}
        elif ours != theirs:
            told[key] = (ours, theirs)
    return told
