"""What stands in objects of others, and what the API server says of them, reaches nobody who may not get them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from approvals.models import BundleDeployment, Request
from approvals.steps import apply as step
from provisioner.values import AccessRequest, Identity, ObjectRef
from tests.support.journeys.channels import channels, leaks
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes import live as living
from tests.support.servers.registry import Registry

JsonDict = dict[str, Any]
# Carol may read requests and nothing else; Alice may view everything but Secrets.
HIDDEN, SEEING = "carol", "alice"
GROUP = "sight.example.com"
MARKS = {"release": "meta.helm.sh/release-name"}
KINDS = ("Job", "PersistentVolumeClaim", "ConfigMap", "Secret", "Deployment", "Service", "Boat")


def canary(kind: str) -> str:
    return f"zq{kind.lower()}zq"


def _pod(value: str, *, restart: str = "") -> JsonDict:
    container = {"name": "main", "image": "registry.example.com/x:1", "args": [value]}
    container["env"] = [{"name": "TOKEN", "value": value}]
    return {"containers": [container], **({"restartPolicy": restart} if restart else {})}


def objects(name: str, value: Callable[[str], str], sidecar: str = "") -> dict[str, JsonDict]:
    """One object of each kind, with a value of its own in it."""
    labels = {"app": name}
    pod = _pod(value("Deployment"))
    if sidecar:
        pod["initContainers"] = [{"name": sidecar, "image": f"registry.example.com/{sidecar}:1"}]
    made = {
        "Job": {"apiVersion": "batch/v1", "spec": {"template": {"spec": _pod(value("Job"), restart="Never")}}},
        "PersistentVolumeClaim": {
            "apiVersion": "v1",
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": value("PersistentVolumeClaim"),
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        "ConfigMap": {"apiVersion": "v1", "immutable": True, "data": {"value": value("ConfigMap")}},
        "Secret": {"apiVersion": "v1", "immutable": True, "stringData": {"value": value("Secret")}},
        "Deployment": {
            "apiVersion": "apps/v1",
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        },
        "Service": {
            "apiVersion": "v1",
            "spec": {"selector": {"app": value("Service")}, "ports": [{"name": "http", "port": 80}]},
        },
        "Boat": {"apiVersion": f"{GROUP}/v1", "spec": {"keel": value("Boat")}},
    }
    return {kind: {"kind": kind, "metadata": {"name": name}, **body} for kind, body in made.items()}


def definition() -> JsonDict:
    keel = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "messageExpression": "oldSelf"}]}
    return bundles.definition(GROUP, "Boat", schema=bundles.with_spec({"keel": keel}))


def put(site: DeployedSite, obj: JsonDict, *, manager: str = "zqmanagerzq", **marks: str) -> ObjectRef:
    """Somebody else's object, with their name, their labels and their annotations."""
    kind = obj["kind"]
    labels = {**(obj["metadata"].get("labels") or {}), "team": canary(kind)}
    meta = {**obj["metadata"], "namespace": site.namespace, "labels": labels}
    meta["annotations"] = {"by": canary(kind), **{MARKS[name]: value for name, value in marks.items()}}
    made = {**obj, "metadata": meta}
    site.api.create(made, field_manager=manager)
    return ObjectRef.of(made)


def open_sea(site: DeployedSite) -> None:
    site.api.apply(definition(), field_manager="test")
    living.until_served(site.api, GROUP, "v1", "Boat")
    # The aggregated role `view` does not cover what it does not know.
    rule = {"apiGroups": [GROUP], "resources": ["boats"], "verbs": ["get"]}
    about = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "see-boats", "namespace": site.namespace},
    }
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "platform"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "see-boats"}
    site.api.apply({**about, "kind": "Role", "rules": [rule]}, field_manager="test")
    site.api.apply({**about, "kind": "RoleBinding", "roleRef": reference, "subjects": [group]}, field_manager="test")
    asked = AccessRequest("get", GROUP, "boats", namespace=site.namespace)
    living.until_may(site.api, Identity("alice", ("platform",)), asked)


def wished(site: DeployedSite, registry: Registry, name: str, bundle: list[JsonDict], **options: Any) -> Request:
    files = bundles.manifests(*bundle)
    deployment = site.prepare(name, bundles.image(registry, name, files), **options)
    site.look_after(deployment)
    return site.latest(deployment)


@pytest.mark.parametrize(
    "protection",
    [pytest.param("Prevent", marks=pytest.mark.thorough), pytest.param("IfNoController", marks=pytest.mark.proof)],
)
def test_S09_S27_no_channel_tells_what_stands_in_an_object_of_somebody_else(
    site: DeployedSite, registry: Registry, caplog: pytest.LogCaptureFixture, protection: str
) -> None:
    caplog.set_level(logging.DEBUG)
    open_sea(site)
    for obj in objects("there", canary, sidecar=canary("Deployment")).values():
        put(site, obj)
    bundle = list(objects("there", lambda kind: f"ours-{kind.lower()}").values())
    request = wished(site, registry, f"sight-{protection.lower()}", bundle, collisionProtection=protection)
    assert request.state == "in_review"
    texts = {kind: canary(kind) for kind in KINDS} | {"manager": "zqmanagerzq"}
    assert leaks(channels(site, request, HIDDEN, caplog), texts) == []

    seen = channels(site, request, SEEING, caplog)
    rest, page = ("".join(text for name, text in seen.items() if name.startswith(door)) for door in ("REST", "page /"))
    assert {kind for kind in KINDS if texts[kind] not in rest} <= {"Secret"}
    assert {kind for kind in KINDS if texts[kind] not in page} <= {"Secret"}
    assert "zqmanagerzq" in rest
    assert "zqmanagerzq" in page
    assert canary("Secret") not in rest + page


def test_S09_S27_what_the_api_server_says_of_an_own_object_is_shown_to_who_may_get_it(
    site: DeployedSite, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    """An update that is refused quotes what stands there; others put values into our objects, too."""
    caplog.set_level(logging.DEBUG)
    open_sea(site)
    first = objects("own", lambda kind: f"first-{kind.lower()}")
    request = wished(site, registry, "sight-own", list(first.values()))
    assert site.approve(request.deployment).state in ("applied", "failed")
    boat = ObjectRef(GROUP, "v1", "Boat", site.namespace, "own")
    deployment = site.ref("Deployment", "own")
    site.api.delete(boat)
    site.api.create(
        {**first["Boat"], "metadata": {"name": "own", "namespace": site.namespace}, "spec": {"keel": "zqboatzq"}},
        field_manager="zqmanagerzq",
    )

    def meddle(live: Any) -> None:
        spec = live["spec"]["template"]["spec"]
        spec["initContainers"] = [{"name": "zqdeploymentzq", "image": "registry.example.com/zqdeploymentzq:1"}]

    site.edit(deployment, meddle, manager="zqmeddlerzq")
    second = objects("own", lambda kind: f"second-{kind.lower()}")
    request = wished(site, registry, "sight-own", list(second.values()))
    texts = {"Boat": "zqboatzq", "Deployment": "zqdeploymentzq"}
    assert leaks(channels(site, request, HIDDEN, caplog), texts) == []
    seen = channels(site, request, SEEING, caplog)
    assert any("zqdeploymentzq" in text for name, text in seen.items() if name.startswith("page"))
    assert any("zqdeploymentzq" in text for name, text in seen.items() if name.startswith("REST"))


MOVING = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"sha256:[0-9a-f]{64}|\b[0-9a-f]{64}\b", "DIGEST"),
    (r"(sha256:)?\b[0-9a-f]{12}(…|\b)", "DIGEST"),
    (r'"value": "[^"]*"', "SIGNED"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00| UTC)?", "TIME"),
    (r'(csrfmiddlewaretoken" value|nonce|csrf-token" content)="[^"]*"|"X-CSRFToken": "[^"]*"', "TOKEN"),
    (r'"(resourceVersion|generation|resource_version)": ?"?\d+"?', "VERSION"),
    (r"\b\d+ (second|minute)s?\b|just now", "AGO"),
    (r"\btwin-(same|diff)\b", "TWIN"),
)


def still(text: str) -> str:
    for pattern, word in MOVING:
        text = re.sub(pattern, word, text)
    return text


@pytest.mark.thorough
@pytest.mark.parametrize("protection", ["Prevent", pytest.param("IfNoController", marks=pytest.mark.thorough)])
def test_S09_nobody_learns_whether_an_object_of_somebody_else_differs(
    site: DeployedSite, registry: Registry, caplog: pytest.LogCaptureFixture, protection: str
) -> None:
    """Nor, where it stands in the way, what would come of it if it were adopted, and who holds it."""
    open_sea(site)
    told = []
    for twin, there in (("twin-same", "ours"), ("twin-diff", "theirs")):
        name = f"{twin}-{protection.lower()}"
        theirs = objects(name, lambda kind, there=there: f"{there}-{kind.lower()}")
        if there == "theirs":
            hostile = {"name": "hostile", "image": "x", "securityContext": {"privileged": True}}
            theirs["Deployment"]["spec"]["template"]["spec"]["initContainers"] = [hostile]
        # With IfNoController it is told that somebody holds it: nobody could adopt it.
        marks = {"release": "zqreleasezq"} if there == "theirs" and protection == "Prevent" else {}
        for obj in theirs.values():
            put(site, obj, **marks)
        ours = objects(name, lambda kind: f"ours-{kind.lower()}")
        request = wished(site, registry, name, list(ours.values()), collisionProtection=protection)
        everything = channels(site, request, HIDDEN, caplog)
        about = ("page /requests/UID", "REST requests/UID", "chat", "cluster BundleDeploymentRequest")
        told.append({still(key): still(text) for key, text in everything.items() if key.startswith(about)})
    same, different = told
    assert same.keys() == different.keys()
    assert [(key, *_apart(same[key], different[key])) for key in same if same[key] != different[key]] == []


def _apart(one: str, other: str) -> tuple[str, str]:
    """Where two texts part."""
    place = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return one[max(place - 80, 0) : place + 80], other[max(place - 80, 0) : place + 80]


def test_S09_nothing_of_somebody_else_is_tried_while_nobody_knows_who_asks(
    site: DeployedSite, registry: Registry
) -> None:
    name = "unknown"
    obj = objects(name, canary)["ConfigMap"]
    put(site, obj)
    ours = objects(name, lambda kind: f"ours-{kind.lower()}")["ConfigMap"]
    request = wished(site, registry, name, [ours], collisionProtection="IfNoController")
    (known,) = request.reports.get().body["plan"]["actions"]
    assert canary("ConfigMap") in json.dumps(known)

    deployment: BundleDeployment = request.deployment
    Request.objects.filter(pk=request.pk).update(state="stale", is_requester_known=False)
    site.work(request)
    (unknown,) = request.reports.get(round=request.round).body["plan"]["actions"]
    assert (unknown["action"], unknown["isProved"], unknown["problem"]) == ("adopt", False, "")
    assert unknown["after"]["data"] == {"value": "ours-configmap"}
    assert deployment.requests.count() == 1


@pytest.mark.parametrize("at", [pytest.param("the gate", marks=pytest.mark.thorough), "the write"])
def test_S09_why_an_object_of_somebody_else_cannot_be_adopted_by_now_is_told_only_to_who_may_get_it(
    site: DeployedSite, registry: Registry, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """It was tried and reviewed; then its owner writes a field that the bundle has, too."""
    caplog.set_level(logging.DEBUG)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "grows"}}
    put(site, {**config, "data": {"theirs": "zqconfigmapzq"}})
    ours = {**config, "data": {"shared": "ours", "unshared": "ours"}}
    name = f"{site.namespace}-grows"
    request = wished(site, registry, name, [ours], collisionProtection="IfNoController")
    assert [(one["action"], one["problem"]) for one in request.reports.get().body["plan"]["actions"]] == [("adopt", "")]

    def grow() -> None:
        meta = {"name": "grows", "namespace": site.namespace}
        theirs = {**config, "metadata": meta, "data": {"shared": "zqconfigmapzq"}}
        site.api.apply(theirs, field_manager="zqmanagerzq")

    if at == "the gate":
        grow()
        expected = ("approved", "objects-refused")
    else:
        started = step._start
        monkeypatch.setattr(step, "_start", lambda *words: (grow(), started(*words))[1])
        expected = ("failed", "apply-failed")
    request = site.approve(request.deployment)
    assert (request.state, request.problem_code) == expected, request.problem
    site.look_after(request.deployment)
    assert "is shown only to people who may get it" in request.problem
    texts = {"field": "data.shared", "value": "zqconfigmapzq", "manager": "zqmanagerzq"}
    # The report names every field that the content sets, whatever the object of somebody else holds.
    told = {
        place: text.replace("data.shared, data.unshared", "")
        for place, text in channels(site, request, HIDDEN, caplog).items()
    }
    assert leaks(told, texts) == []
    seen = channels(site, request, SEEING, caplog)
    for door in ("page", "REST"):
        assert any("data.shared" in text for name, text in seen.items() if name.startswith(door)), door


def bound_role(name: str, rules: list[JsonDict], subject: JsonDict) -> list[JsonDict]:
    group = "rbac.authorization.k8s.io"
    about = {"apiVersion": f"{group}/v1", "metadata": {"name": name}}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    return [
        {**about, "kind": "ClusterRole", "rules": rules},
        {**about, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]},
    ]


def test_S09_S27_what_roles_beside_the_plan_hold_is_told_only_to_who_may_get_them(
    site: DeployedSite, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    """A workload runs as an account that a role of the cluster makes strong; the words of the authorizer name roles."""
    caplog.set_level(logging.DEBUG)
    group = "rbac.authorization.k8s.io"
    robot = {"kind": "ServiceAccount", "name": "robot", "namespace": site.namespace}
    rule = {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["zqusernamezq"]}
    for obj in bound_role(f"zqstrongzq-{site.namespace}", [rule], robot):
        site.api.apply(obj, field_manager="test")
    bundle = objects("mine", lambda kind: f"ours-{kind.lower()}")["Deployment"]
    bundle["spec"]["template"]["spec"]["serviceAccountName"] = "robot"
    request = wished(site, registry, "sight-roles", [bundle])
    assert request.state == "in_review"
    assert request.reports.get().findings.filter(rule="OWN-PRATIQUE-05", severity="critical").exists()
    site.approve(request.deployment)
    request.refresh_from_db()
    assert "RBAC: allowed" in request.reviews.get().access_reason

    texts = {"a role's rule": "zqusernamezq", "a role": "zqstrongzq", "the authorizer": "RBAC: allowed"}
    assert leaks(channels(site, request, HIDDEN, caplog), texts) == []

    kinds = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]
    readers = {"apiGroup": group, "kind": "Group", "name": "platform"}
    seeing = [{"apiGroups": [group], "resources": kinds, "verbs": ["get"]}]
    for obj in bound_role(f"see-roles-{site.namespace}", seeing, readers):
        site.api.apply(obj, field_manager="test")
    asked = AccessRequest("get", group, "clusterrolebindings")
    living.until_may(site.api, Identity("alice", ("platform",)), asked)
    seen = channels(site, request, SEEING, caplog)
    rest, page = ("".join(text for name, text in seen.items() if name.startswith(door)) for door in ("REST", "page /"))
    assert {kind for kind, text in texts.items() if text not in rest} == set()
    assert "zqusernamezq" in page
