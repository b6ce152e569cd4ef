"""Requests whose plans hold these objects, before and after."""

from __future__ import annotations

import copy
from typing import Any

from approvals.models import Request
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World


def action(after: Any, before: Any = None, **more: Any) -> dict[str, Any]:
    """A planned action of a report's record."""
    body = after or before
    group, _, version = body["apiVersion"].rpartition("/")
    meta = body["metadata"]
    return {
        "ref": {
            "group": group,
            "version": version,
            "kind": body["kind"],
            "namespace": meta.get("namespace", ""),
            "name": meta["name"],
        },
        "action": "update" if before and after else "create" if after else "delete",
        "uid": "",
        "resourceVersion": "",
        "before": before,
        "after": after,
        "isProved": True,
        "warnings": [],
        "problem": "",
        "problemCode": "",
        "notes": [],
        "serverWords": "",
        **more,
    }


def planned(env: World, *actions: dict[str, Any], findings: Any = ()) -> Request:
    body = {**scene.report_of("image-known-before"), "findings": list(findings)}
    body["plan"] = {**body["plan"], "actions": list(actions)}
    return scene.reported(scene.asked(env.cluster, "barge", env.rita), body)


def finding(ref: Any, path: Any, **more: Any) -> dict[str, Any]:
    found = copy.deepcopy(scene.report_of("image-known-before")["findings"][0])
    return {**found, "ref": ref, "path": path, "evidence": {}, "sources": [], "serverWords": "", **more}
