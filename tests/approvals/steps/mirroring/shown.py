"""A BundleDeployment as it is shown in each row of the table of conditions."""

from __future__ import annotations

from typing import Any

from approvals.steps.mirroring.readiness import Readiness


def shown(readiness: Readiness, *, seen: int = 3) -> dict[str, Any]:
    """A BundleDeployment of generation 3 whose status is of generation `seen`."""
    row = readiness.value
    said = {
        "Ready": str(row.ready),
        "Reconciling": str(row.is_reconciling),
        "Stalled": str(row.is_stalled),
    }
    conditions = [
        {
            "type": name,
            "status": status,
            "reason": row.reason or "MissingRights",
            "message": row.when,
            "observedGeneration": seen,
        }
        for name, status in said.items()
    ]
    return {**wish(), "status": {"conditions": conditions, "observedGeneration": seen}}


def wish() -> dict[str, Any]:
    meta = {"name": "web", "generation": 3}
    return {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": meta, "spec": {}}
