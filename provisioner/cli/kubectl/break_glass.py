"""`kubectl pratique break-glass`: let a request go in an emergency, or try beforehand whether one could."""

from __future__ import annotations

import argparse
import secrets
import sys

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.cluster import Record, ask_identity, cluster_of, deployment_of
from provisioner.cli.kubectl.decisions import NOT_COUNTED, OK, decide, review_object
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import ClusterError, Forbidden
from provisioner.escaping import visible
from provisioner.values import Identity

POLICY = "pratique-reviews"
NOBODY = Identity("pratique:drill-of-a-forged-reviewer")


def break_glass(options: argparse.Namespace) -> int:
    """What `decide` does, with the number of the incident."""
    if options.drill:
        return _drill(options)
    if not options.incident.strip():
        raise Usage("--incident is missing: name the incident, others will see it")
    return decide(options)


def _drill(options: argparse.Namespace) -> int:
    """Have the API server try both what the caller would create and a forgery that its admission policy must refuse."""
    api = cluster_of(options)
    name = str(deployment_of(api, options.name)["metadata"]["name"])
    who = ask_identity(api)
    found = {
        "the API server takes your break-glass": _refusal_of(api, _review(name, who)),
        f"the policy {POLICY} refuses a forged one": _why_not_refused(api, _review(name, NOBODY)),
    }
    for what, problem in found.items():
        print(visible(f"{'no' if problem else 'ok'}: {what}{f': {problem}' if problem else ''}"))
    if any(found.values()):
        print(f"{who.username} could not break glass for {visible(name)}", file=sys.stderr)
        return NOT_COUNTED
    print(
        f"{visible(who.username)} could break glass for {visible(name)}. Nothing was written. Whether your groups "
        "count, and whether you owe a review, Pratique says when you do it"
    )
    return OK


def _review(deployment: str, who: Identity) -> Record:
    """A break-glass for a request that there is not: no request has the number 0."""
    spec = {
        "requestRef": {"name": f"{deployment}-0"},
        "bundleDeploymentName": deployment,
        "decision": "BreakGlass",
        "subjectDigest": f"sha256:{'0' * 64}",
        "round": 1,
        "reason": "drill",
        "incident": "drill",
    }
    return review_object(f"drill-{secrets.token_hex(4)}", who, spec)


def _refusal_of(api: ClusterClient, review: Record) -> str:
    try:
        api.create(review, dry_run=True)
    except ClusterError as exc:
        return str(exc.server_words or exc)
    return ""


def _why_not_refused(api: ClusterClient, forged: Record) -> str:
    try:
        api.create(forged, dry_run=True)
    except Forbidden as exc:
        return "" if POLICY in exc.server_words else str(exc.server_words or exc)
    except ClusterError as exc:
        return str(exc.server_words or exc)
    return "it took the forgery: apply deploy/admission/reviews.yaml, else no review by kubectl counts"
