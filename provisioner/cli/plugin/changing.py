"""`pause`, `resume` and `rollback`: wishes that are written into the BundleDeployment, as the caller."""

from __future__ import annotations

import argparse
import secrets
from typing import Any

from provisioner.api_groups import OWN_GROUP
from provisioner.cli.plugin.reading import DEPLOYMENT, VERSION, cluster_of, deployment_of, requests_of
from provisioner.cli.plugin.showing import revisions
from provisioner.cli.usage import Usage
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden

MANAGER = "kubectl-pratique"
PAUSE_REASON, ROLLBACK_TO = f"{OWN_GROUP}/pause-reason", f"{OWN_GROUP}/rollback-to"


def pause(options: argparse.Namespace) -> int:
    _write(options, {"spec": {"paused": True}}, {PAUSE_REASON: options.reason or None})
    print(f"bundledeployment {options.name} is paused: approved requests wait until somebody resumes it")
    return 0


def resume(options: argparse.Namespace) -> int:
    _write(options, {"spec": {"paused": False}}, {PAUSE_REASON: None})
    print(f"bundledeployment {options.name} is resumed")
    return 0


def rollback(options: argparse.Namespace) -> int:
    """What follows the slash means nothing: the same revision can be asked for twice."""
    _check_revision(options)
    _write(options, {}, {ROLLBACK_TO: f"{options.revision}/{secrets.token_hex(4)}"})
    print(
        f"asked for revision {options.revision} of {options.name}: the rollback is a request and needs approval: "
        f"kubectl pratique history {options.name}"
    )
    return 0


def _check_revision(options: argparse.Namespace) -> None:
    """Whoever may not list requests asks all the same: the service looks again, and says so in the conditions."""
    try:
        known = revisions(requests_of(cluster_of(options), options.name))
    except Forbidden:
        return
    if options.revision not in known:
        there = f"its revisions are {', '.join(map(str, known))}" if known else "nothing was ever applied"
        raise Usage(
            f"{options.name} has no revision {options.revision} to go back to: {there}. "
            f"See `kubectl pratique history {options.name}`"
        )


def _write(options: argparse.Namespace, body: dict[str, Any], annotations: dict[str, str | None]) -> None:
    """To exactly the deployment that is there now: its uid is the precondition."""
    api: ClusterClient = cluster_of(options)
    live = deployment_of(api, options.name)
    about = {"name": options.name, "uid": live["metadata"]["uid"], "annotations": annotations}
    part = {"apiVersion": f"{OWN_GROUP}/{VERSION}", "kind": DEPLOYMENT, "metadata": about, **body}
    api.merge(part, field_manager=MANAGER)
