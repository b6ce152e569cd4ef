"""What the tests of the review room build with: contents from folders and from objects, and facts around them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from provisioner.render import BUILT_IN, Rendering, content_digest, render_content
from provisioner.review.base.facts import Check, ClusterSurroundings, Facts
from provisioner.review.frame import report
from provisioner.values import Action, Content, Finding, GroupKind, Manifest, ObjectRef, Plan, PlannedAction, Tree

OTHER_KINDS = {GroupKind("monitoring.coreos.com", "ServiceMonitor"): True}


def is_namespaced(kind: GroupKind) -> bool | None:
    return BUILT_IN.get(kind, OTHER_KINDS.get(kind))


def content_of(folder: Path) -> Content | None:
    """The content of a plain bundle in a folder, None if there is no such folder."""
    if not folder.is_dir():
        return None
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return render_content(Tree(files), Rendering("plain", "shop", "installer", is_namespaced), pins=())


def content_with(*objects: dict[str, Any]) -> Content:
    manifests = tuple(Manifest(one) for one in objects)
    digest = content_digest(manifests, install_namespace="shop", service_account="installer")
    return Content(manifests, "shop", "installer", (), digest)


def an_object(api_version: str, kind: str, name: str, namespace: str = "", **rest: Any) -> dict[str, Any]:
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}


# A Deployment that the API server takes.
WEB = an_object(
    "apps/v1",
    "Deployment",
    "web",
    spec={
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "example.com/web"}]},
        },
    },
)


def config_map(name: str = "settings", **values: str) -> dict[str, Any]:
    return an_object("v1", "ConfigMap", name, "shop", data=values)


def planned(obj: dict[str, Any], action: Action, **rest: Any) -> PlannedAction:
    after = None if action is Action.DELETE else obj
    return PlannedAction(ObjectRef.of(obj), action, **{"after": after, **rest})


def facts(*actions: PlannedAction, **rest: Any) -> Facts:
    """Facts whose content is what the actions result in."""
    objects = [one.after for one in actions if one.after is not None and one.action is not Action.DELETE]
    content = rest.pop("content", None) or content_with(*objects)
    return Facts(content, Plan(actions, "sha256:plan"), **rest)


def web_workload(*, env: list[Any] | None = None, volumes: list[Any] | None = None, **pod: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "env": env or []}
    spec = {"containers": [container], "volumes": volumes or [], **pod}
    return an_object("apps/v1", "Deployment", "web", "shop", spec={"template": {"spec": spec}})


def reading(kind: str, name: str, key: str = "", *, optional: bool = False) -> dict[str, Any]:
    word = "configMapKeyRef" if kind == "ConfigMap" else "secretKeyRef"
    return {"name": "A", "valueFrom": {word: {"name": name, "key": key, "optional": optional}}}


def core_ref(kind: str, name: str) -> ObjectRef:
    return ObjectRef("", "v1", kind, "shop", name)


def findings_of(check: Check, *actions: Any, exists: dict[ObjectRef, bool] | None = None, **rest: Any) -> list[Finding]:
    """What one check says of a plan of these actions; `exists` says which objects beside the plan are there."""
    around = ClusterSurroundings(exists={one.identity: answer for one, answer in (exists or {}).items()})
    return judged_by(facts(*actions, around=around, **rest), [check])


def judged_by(given: Facts, checks: Sequence[Check] | None = None) -> list[Finding]:
    """What rules say of it. What none of these checks judges has tests of its own (judged/test_unjudged_fields.py)."""
    return [one for one in report(given, checks).findings if one.rule not in {"UNCLAIMED", "UNJUDGED"}]


def named(found: list[Finding], rule: str) -> list[Finding]:
    return [one for one in found if one.rule == rule]
