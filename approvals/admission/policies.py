"""The admission policies that Pratique ships, by what they prove, and how to see that an API server enforces them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from approvals.admission.stamp import ANNOTATION, PROBE, stamp_for, stamp_of
from approvals.models import AuthorAdmission, BundleDeployment, Cluster, ReviewAdmission
from provisioner.api_groups import ADMISSION_GROUP, OWN_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import ClusterError, Forbidden, PreconditionFailed, UnknownKind
from provisioner.values import ObjectRef

API_VERSION = f"{OWN_GROUP}/v1alpha2"
REMEDY = "pratique-manage cluster_manifests | kubectl apply --server-side -f -"
# Nobody's name: the API server lets no user begin like this.
NOBODY = "pratique:nobody"
STAMPING = "MutatingAdmissionPolicy"
TRIES = 3
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PolicySet:
    """Policies that prove one thing: their `file`, the `record` of what was seen of them, and the dry-runs that show
    whether they are enforced (`probe` says why not, "" where they are).

    What `optional` holds may be missing, or of a kind that is not served. Where it is there, it is as it was shipped.
    """

    file: str
    record: type[ReviewAdmission] | type[AuthorAdmission]
    probe: Callable[[Api, Cluster, frozenset[str]], str]
    unserved: str
    optional: str = ""


@cache
def shipped(file: str) -> tuple[dict[str, Any], ...]:
    """The objects of a file of deploy/."""
    text = (Path(settings.BASE_DIR) / file).read_text(encoding="utf-8")
    return tuple(yaml.safe_load_all(text))


@dataclass(frozen=True, slots=True)
class StoredPolicies:
    """Policies as a cluster stores them: `marks` are uid and generation of each policy and binding, `kinds` of which
    kinds there are, `written_at` when the last of them was written by the cluster's clock. `problem` is what is wrong
    with the first that is not as shipped; there are no marks then."""

    marks: str = ""
    kinds: frozenset[str] = frozenset()
    written_at: datetime = LONG_AGO
    problem: str = ""


def read(api: Api, policies: PolicySet) -> StoredPolicies:
    optional = shipped(policies.optional) if policies.optional else ()
    marks, times, kinds = [], [LONG_AGO], set()
    for wanted in (*shipped(policies.file), *optional):
        kind, name, is_optional = wanted["kind"], wanted["metadata"]["name"], wanted in optional
        try:
            live = api.get(ObjectRef.of(wanted))
        except UnknownKind:
            if not is_optional:
                raise
            live = None
        if live is None and is_optional:
            continue
        if live is None:
            return StoredPolicies(problem=f"the cluster has no {kind} {name}. Apply it: {REMEDY}")
        about = live["metadata"]
        if about.get("deletionTimestamp") or live.get("spec") != wanted["spec"]:
            return StoredPolicies(problem=f"{kind} {name} is not the one that Pratique ships. Apply it: {REMEDY}")
        kinds.add(kind)
        marks.append(f"{kind}/{name} {about['uid']} {about.get('generation', 0)}")
        written = [entry.get("time") for entry in about.get("managedFields") or []]
        times += [datetime.fromisoformat(text) for text in (about.get("creationTimestamp"), *written) if text]
    return StoredPolicies("\n".join(marks), frozenset(kinds), max(times))


def find_review_problem(api: Api, _cluster: Cluster, _kinds: frozenset[str]) -> str:
    """Why the policy for reviews is not enforced; "" where the API server refuses, in a dry-run, what names nobody."""
    said = {
        "requestRef": {"name": f"{PROBE}-1"},
        "bundleDeploymentName": PROBE,
        "decision": "Deny",
        "subjectDigest": f"sha256:{'0' * 64}",
        "round": 1,
        "reviewer": {"username": NOBODY},
    }
    forged = {"apiVersion": API_VERSION, "kind": "BundleDeploymentReview", "metadata": {"name": PROBE}, "spec": said}
    policy = "pratique-reviews"
    try:
        api.create(forged, dry_run=True)
    except ClusterError as exc:
        if isinstance(exc, Forbidden) and policy not in exc.server_words:
            return f"Pratique may not try to create a forged review. Apply its roles: {REMEDY}"
        is_ours = policy in exc.server_words and "spec.reviewer.username must be yours" in exc.server_words
        return "" if is_ours else f"a forged review was refused, but not by the policy {policy} ({exc.code})"
    return f"the API server stores the policy {policy} and does not enforce it"


def find_author_problem(api: Api, cluster: Cluster, kinds: frozenset[str]) -> str:
    """Why the policies for authors are not enforced, tried by a forged author of a BundleDeployment that is there:
    whoever may not create one can try it, too.

    Where a policy stamps, it writes the author back; the webhook leaves this dry-run alone, so it is refused.
    """
    deployment = _find_deployment(api, cluster)
    if deployment is None:
        return "there is no BundleDeployment yet to try the policies with: the author of the first one is unknown"
    forged = stamp_for([NOBODY, ""])
    about = {"name": deployment.name, "uid": deployment.uid, "annotations": {ANNOTATION: forged}}
    obj = {"apiVersion": API_VERSION, "kind": "BundleDeployment", "metadata": about}
    try:
        found = api.apply(obj, field_manager=PROBE, dry_run=True, force=True).object
    except PreconditionFailed:
        return "the BundleDeployment to try the policies with was replaced: they are tried again"
    except Forbidden as exc:
        if "pratique-authors" not in exc.server_words:
            return f"Pratique may not try to forge an author. Apply its roles: {REMEDY}"
        # Forged authors are refused: somebody has to stamp those that count, the policy or the webhook.
        if STAMPING in kinds:
            return f"the API server stores the {STAMPING} pratique-authors and does not run it"
        webhook = ObjectRef(ADMISSION_GROUP, "v1", "MutatingWebhookConfiguration", "", "pratique-authors")
        return "" if api.get(webhook, metadata_only=True) is not None else NOBODY_STAMPS
    if stamp_of(found) == forged:
        return "the API server stores the policies pratique-authors and enforces none of them"
    return "" if STAMPING in kinds else f"something else than Pratique writes the annotation {ANNOTATION}"


NOBODY_STAMPS = (
    "nothing writes down who wrote a BundleDeployment: apply deploy/admission/author-stamp.yaml (Kubernetes 1.36 "
    "or later), or run the webhook of deploy/admission/author-webhook.yaml"
)


def _find_deployment(api: Api, cluster: Cluster) -> BundleDeployment | None:
    """A BundleDeployment that is there; one of the first rows may have gone a moment ago."""
    rows = BundleDeployment.objects.filter(cluster=cluster, gone_at__isnull=True, deletion_requested_at__isnull=True)
    for row in rows.order_by("seen_at")[:TRIES]:
        live = api.get(ObjectRef(OWN_GROUP, "v1alpha2", "BundleDeployment", "", row.name), metadata_only=True)
        if live is not None and live["metadata"]["uid"] == row.uid:
            return row
    return None


REVIEWS = PolicySet(
    "deploy/admission/reviews.yaml",
    ReviewAdmission,
    find_review_problem,
    "the cluster does not serve reviews or admission policies",
)
AUTHORS = PolicySet(
    "deploy/admission/authors.yaml",
    AuthorAdmission,
    find_author_problem,
    "the cluster does not serve ValidatingAdmissionPolicy, which Kubernetes does from 1.30 on",
    optional="deploy/admission/author-stamp.yaml",
)
EVERY = (REVIEWS, AUTHORS)


@dataclass(frozen=True, slots=True)
class PolicyNotice:
    """What a set of policies does for a cluster: `since` is when it was first seen in force, None where `problem` says
    why it is not; both are empty where no worker has looked yet. `manifests` is what to apply."""

    title: str
    without: str
    since: datetime | None
    looked_at: datetime | None
    problem: str
    manifests: str


_WORDS: tuple[tuple[PolicySet, str, str], ...] = (
    (
        AUTHORS,
        "Authors of changes with kubectl and GitOps",
        "Changes made with kubectl or GitOps have no known requester.",
    ),
    (REVIEWS, "Reviews with kubectl", "Reviews by kubectl do not count."),
)


def told_of(clusters: Iterable[int]) -> dict[int, list[PolicyNotice]]:
    """By cluster, in the order of the page."""
    wanted = list(clusters)
    found: dict[int, list[PolicyNotice]] = {pk: [] for pk in wanted}
    for policies, title, without in _WORDS:
        rows = {row.cluster_id: row for row in policies.record.objects.filter(cluster__in=wanted)}
        files = [file for file in (policies.file, policies.optional) if file]
        text = "\n---\n".join((Path(settings.BASE_DIR) / file).read_text(encoding="utf-8").strip() for file in files)
        for pk in wanted:
            row = rows.get(pk)
            since, looked_at = (row.since, row.looked_at) if row else (None, None)
            found[pk].append(PolicyNotice(title, without, since, looked_at, row.problem if row else "", text))
    return found
