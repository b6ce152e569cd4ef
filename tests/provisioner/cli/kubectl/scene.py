"""A cluster with one request, and a service that writes down whatever is sent to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from provisioner.cluster.client.api import ClusterClient
from provisioner.review.base.record import to_record
from provisioner.values import Action, Finding, ObjectRef, Plan, PlannedAction, Report, Section, Severity
from tests.support.folders import ROOT
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig
from tests.support.kubernetes.live import until_served
from tests.support.servers.serving import Handler, serving

DIGEST = "sha256:" + "a" * 64
TOKEN = "prq_" + "t" * 43
UID = "0b1c0000-0000-0000-0000-000000000001"
GROUP = "core.rukpak.io/v1alpha2"
CHANGED = ObjectRef("", "v1", "ConfigMap", "shop", "settings")


def body(colour: str) -> dict[str, Any]:
    about = {"name": "settings", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"colour": colour}}


def report() -> dict[str, Any]:
    planned = PlannedAction(CHANGED, Action.UPDATE, "u-1", "7", body("red"), body("green"), True, (), "")
    finding = Finding("OBJ-02", Section.OBJECTS, Severity.DANGEROUS, "the colour changes", CHANGED)
    record = to_record(Report(("1 object to update.",), (finding,), Plan((planned,), DIGEST)))
    return {**record, "containers": [], "containersHidden": 0, "is_whole": True, "parts": {}}


@dataclass
class Recorder:
    """What came, and what is answered by path, with its query or without: (status, JSON)."""

    url: str = ""
    came: list[tuple[str, str, dict[str, str], str]] = field(default_factory=list)
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        return [f"{method} {path}" for method, path, _, _ in self.came]

    def everything(self) -> str:
        return repr(self.came)


def usual_answers() -> dict[str, tuple[int, Any]]:
    row = {"uid": UID, "number": 2, "deployment": "web", "subject_digest": DIGEST}
    about = {
        "scopes": ["read"],
        "proofs": [{"cluster": "prod", "username": "ada"}],
        "expires_at": "2026-12-01T00:00:00Z",
    }
    return {
        "/api/v1/tokens/current": (200, about),
        "/api/v1/requests": (200, {"results": [row], "next": None}),
        f"/api/v1/requests/{UID}/report": (200, report()),
        "/api/v1/sign-in/issuers": (200, []),
    }


@contextmanager
def recording() -> Iterator[Recorder]:
    recorder = Recorder(answers=usual_answers())

    class Recording(Handler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(length).decode() if length else ""
            recorder.came.append((self.command, self.path, dict(self.headers), sent))
            known = recorder.answers.get(self.path) or recorder.answers.get(self.path.partition("?")[0])
            status, found = known or (404, {"detail": "not found"})
            text = b"" if found is None else found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{recorder.url}/elsewhere")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_POST(self) -> None:
            self.do_GET()

        def do_PUT(self) -> None:
            self.do_GET()

        def do_DELETE(self) -> None:
            self.do_GET()

    with serving(Recording) as recorder.url:
        yield recorder


def wish(endpoint: Endpoint, folder: Path, *, page: str = "", digest: str = DIGEST) -> ClusterClient:
    """The CRDs, the deployment `web` and its request `web-2`, which is in review."""
    api = ClusterClient.connect(kubeconfig(endpoint, folder).read_text(), trusted=True)
    for path in sorted((ROOT / "deploy/crds").glob("*.yaml")):
        for obj in yaml.safe_load_all(path.read_text()):
            api.apply(obj, field_manager="test", force=True)
    for kind in ("BundleDeployment", "BundleDeploymentRequest", "BundleDeploymentReview"):
        until_served(api, "core.rukpak.io", "v1alpha2", kind)
    source = {"kind": "configMap", "configMap": {"name": "web"}}
    spec = {"installNamespace": "shop", "serviceAccountName": "installer", "sources": [source]}
    about = {"apiVersion": GROUP, "kind": "BundleDeployment", "metadata": {"name": "web"}}
    made = api.apply({**about, "spec": spec}, field_manager="test", force=True).object
    annotations = {"core.rukpak.io/url": page} if page else {}
    request = {
        "apiVersion": GROUP,
        "kind": "BundleDeploymentRequest",
        "metadata": {"name": "web-2", "annotations": annotations},
    }
    told = {"bundleDeploymentRef": {"name": "web", "uid": made["metadata"]["uid"]}, "purpose": "deploy"}
    told |= {"requester": {"username": "rita", "via": "browser"}}
    api.apply({**request, "spec": told}, field_manager="test", force=True)
    summary = {"worst": "dangerous", "headline": ["1 object to update."]}
    state = {"state": "in_review", "round": 1, "subjectDigest": digest, "reportSummary": summary, "conditions": []}
    api.apply({**request, "status": state}, field_manager="test", subresource="status", force=True)
    api.apply({**about, "status": {"activeRequest": "web-2"}}, field_manager="test", subresource="status", force=True)
    return api
