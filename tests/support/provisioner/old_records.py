"""A report as version 1 wrote it, when the words of the API server stood among ours; `hunter2` is a value of the cluster."""

from __future__ import annotations

from typing import Any

VALUE = "hunter2"
MAP = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings"}
SERVICE = {"group": "", "version": "v1", "kind": "Service", "namespace": "shop", "name": "web"}


def old_record() -> dict[str, Any]:
    """One finding, one action that works, and one that the API server refuses."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
    finding = {
        "rule": "PRE-09",
        "section": "preflight",
        "severity": "breaking",
        "message": f'Cannot update ConfigMap shop/settings: spec.a: Invalid value: "{VALUE}"',
        "ref": MAP,
        "path": ["spec", "a"],
        "evidence": {"code": "invalid-object"},
        "verdicts": {},
        "isNew": True,
        "fingerprint": "f1",
    }
    works = {
        "ref": SERVICE,
        "action": "create",
        "uid": "",
        "resourceVersion": "",
        "before": None,
        "after": {**body, "kind": "Service"},
        "isProved": True,
        "warnings": [f"a webhook says {VALUE}"],
        "problem": "",
        "problemCode": "",
    }
    refused = {
        **works,
        "ref": MAP,
        "action": "update",
        "uid": "u-1",
        "resourceVersion": "7",
        "before": body,
        "after": body,
        "isProved": False,
        "warnings": [],
        "problem": f'update: spec.a: Invalid value: "{VALUE}"',
        "problemCode": "invalid-object",
    }
    severities = ("critical", "breaking", "unknown", "dangerous", "notable", "safe")
    return {
        "version": 1,
        "headline": [f"The API server refuses it: {VALUE}"],
        "worst": "breaking",
        "totals": {name: int(name == "breaking") for name in severities},
        "findings": [finding],
        "plan": {"digest": "sha256:plan", "actions": [works, refused]},
    }
