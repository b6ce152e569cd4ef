"""Requests in review with reports that are drawn, are large, or hold these findings."""

from __future__ import annotations

import json
from typing import Any

from approvals.models import Request
from provisioner.pipeline import look_offline
from provisioner.review.base.record import to_record
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World
from tests.support.provisioner.contents import content_with

ORDER = ["critical", "breaking", "unknown", "dangerous", "notable", "safe"]


def drawn(env: World, old: list[dict[str, Any]], new: list[dict[str, Any]], name: str = "armada") -> Request:
    report = look_offline(content_with(*new), content_with(*old))
    return scene.reported(scene.asked(env.cluster, name, env.rita), json.loads(json.dumps(to_record(report))))


def many(env: World, findings: int = 2_000, objects: int = 5_000, name: str = "armada") -> Request:
    """The report of a bundle that nobody should have made: every section, every severity that the cases have."""
    cases = ("crd-version-dropped", "account-reads-every-secret", "pods-own-the-node", "webhook-locks-the-cluster")
    body = scene.report_of(*cases, "text-that-hides", "service-for-everybody", "image-latest")
    some, actions = body["findings"], body["plan"]["actions"]
    told = [{**some[at % len(some)], "fingerprint": f"f{at}"} for at in range(findings)]
    body["findings"] = sorted(told, key=lambda it: ORDER.index(it["severity"]))
    body["plan"]["actions"] = actions + [
        {
            **actions[at % len(actions)],
            "ref": {**actions[at % len(actions)]["ref"], "name": f"n{at}"},
            "action": "update",
        }
        for at in range(objects - len(actions))
    ]
    return scene.reported(scene.asked(env.cluster, name, env.rita), body)


def with_findings(env: World, *found: dict[str, Any]) -> Request:
    env.kubernetes.allow("ada", "override")
    body = {**scene.report_of("image-known-before"), "findings": list(found), "worst": "notable"}
    return scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
