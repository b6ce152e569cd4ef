"""`python -m tests.support.program tests.chaos.by_kubectl`: reviews by kubectl, counted again and again, each time hurt elsewhere.

Prints a JSON line for every run. Only a real API server proves who made a review, so each run has a deployment of its
own there. It is paused: a verdict is given, and nothing is applied, which the scenarios of scenarios.py are about.
Started by test_by_kubectl.py.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from django.db.models import F, Q

from approvals import kubectl_reviews
from approvals.audit import verify_chain
from approvals.models import AuditEntry, KubectlReview, Request, ReviewAdmission
from approvals.steps.advance import advance
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import PratiqueError
from tests.chaos.draw import Harm, Kind, Scenario
from tests.chaos.found import CUSTOM
from tests.chaos.rewind import Rewound
from tests.chaos.runner import ADVANCE, COUNT, LONG_AGO, LOOK_AFTER, SEE, Case, Chaos, Message, kept
from tests.chaos.scenarios import source
from tests.support.folders import ROOT
from tests.support.journeys.deployed_site import SEEDER, prepare_namespace
from tests.support.kubernetes.endpoint import USERS, Refused
from tests.support.kubernetes.live import until_served
from tests.support.patience import scaled, wait_for

REVIEWER = next(user for user in USERS if user.name == "alice")
POLICIES = [*yaml.safe_load_all((ROOT / "deploy/admission/reviews.yaml").read_text())]
REVIEWS = f"{CUSTOM}/bundledeploymentreviews"
IN_FORCE_SECONDS = 60.0
CONFLICT = 409
# What is recorded and what is told part here.
RECORDED = "commit auditentry, kubectlreview, request, review"
# Those that a worker survives, and those that it does not; the API server goes away as well.
KINDS = (
    Kind.KILLED_BEFORE,
    Kind.STOPPED,
    Kind.DATABASE_CUT,
    Kind.KILLED_AFTER,
    Kind.CLUSTER_CRASHED,
    Kind.STOPPED_SENDING,
    Kind.CLUSTER_RESTARTED,
    Kind.DOUBLED,
)


class Said(StrEnum):
    """What the reviewer says; `CHANGES` asks for changes and approves after all."""

    APPROVE = "approve"
    DENY = "deny"
    CHANGES = "request changes, then approve"
    ANOTHER_DIGEST = "approve another digest"


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions of a scenario, whether they are about this request, and the state that it has in the end."""

    decisions: tuple[str, ...]
    state: str
    is_about_it: bool = True


DECIDED = {
    Said.APPROVE: Decided(("Approve",), "approved"),
    Said.DENY: Decided(("Deny",), "denied"),
    Said.CHANGES: Decided(("RequestChanges", "Approve"), "approved"),
    Said.ANOTHER_DIGEST: Decided(("Approve",), "in_review", is_about_it=False),
}


@dataclass(frozen=True, slots=True)
class ReviewedCase(Case):
    """A request in review, and the reviews of it that somebody has created."""

    said: Said
    cluster_id: int
    names: tuple[str, ...]

    @property
    def due(self) -> Message:
        return LOOK_AFTER, self.deployment_id

    @property
    def messages(self) -> list[Message]:
        return [(SEE, self.cluster_id), (COUNT, self.cluster_id), (ADVANCE, self.request_id), self.due]

    @property
    def rows(self) -> list[KubectlReview]:
        return list(KubectlReview.objects.filter(cluster=self.cluster_id, name__in=self.names).select_related("review"))

    def is_open(self) -> bool:
        finished = [row for row in self.rows if row.finished_at]
        behind = Q(mirrored_at__isnull=True) | Q(mirrored_at__lt=F("changed_at"))
        undecided = ~Q(state=DECIDED[self.said].state)
        is_behind = Request.objects.filter(behind | undecided, pk=self.request_id).exists()
        return len(finished) < len(self.names) or is_behind


class Counting(Chaos):
    """Requests in review, and what becomes of what people say about them with kubectl."""

    def prepare(self) -> None:
        self.furnish()
        for obj in POLICIES:
            self.site.api.apply(obj, field_manager=SEEDER, force=True)
        until_served(self.site.api, "core.rukpak.io", "v1alpha2", "BundleDeploymentReview")

    def reviewed(self, said: Said, kind: Kind, event: int, number: int) -> dict[str, Any]:
        """Count what is said with this harm; returns what is found afterwards."""
        case = self._asked(said, number)
        log = self.folder / f"{number}.log"
        log.touch()
        told = self._work(case, Harm(case.scenario, kind, event), log)
        return {
            "said": said,
            "kind": kind,
            "event": event,
            "events": log.read_text().splitlines(),
            "has_happened": told["is_killed"] or log.with_suffix(".happened").exists(),
            **told,
            "found": self._found(case),
        }

    def _swept(self, case: Case) -> list[Message]:
        return [(SEE, self.site.cluster.pk), *super()._swept(case)]

    def _asked(self, said: Said, number: int) -> ReviewedCase:
        self._let_go()
        here, name = self.site, f"said-{number}"
        here.api = Api.connect(self._endpoint().kubeconfig("admin"), timeout_seconds=scaled(60))
        self._put_in_force()
        # A person has so many in an hour.
        KubectlReview.objects.update(created_at=LONG_AGO)
        here.namespace = name
        prepare_namespace(here.api, name)
        asked = here.submit_spec(name, source(self.bundles, "1"), paused=True)
        request = here.latest(asked)
        # Not those of earlier runs: whose worker died is worked on in a process of its own, which no fork may start again.
        wait_for(lambda: _prepared(request), f"{name} is in review", is_so=lambda it: it == "in_review")
        here.look_after(asked)
        names = tuple(self._say(said, request))
        return ReviewedCase(Scenario.FIRST, request.pk, asked.pk, name, {}, said, here.cluster.pk, names)

    def _put_in_force(self) -> None:
        """And have been so for a while, as after every run before which the API server was not away."""
        cluster = self.site.cluster
        wait_for(self._why_unproved, "the policies are in force", IN_FORCE_SECONDS, is_so=lambda it: it == "")
        ReviewAdmission.objects.filter(cluster=cluster).update(since=F("looked_at") - timedelta(minutes=1))

    def _why_unproved(self) -> str:
        try:
            kubectl_reviews.count(self.site.cluster.pk)
        except PratiqueError as exc:
            return str(exc)
        return ReviewAdmission.objects.get(cluster=self.site.cluster).problem

    def _say(self, said: Said, request: Request) -> list[str]:
        names = []
        for number, decision in enumerate(DECIDED[said].decisions, start=1):
            name = f"{request.deployment.name}-{number}"
            create = partial(self._refusal, _review(name, said, decision, request))
            wait_for(create, f"{name} is created", IN_FORCE_SECONDS, is_so=lambda it: it is None)
            names.append(name)
        return names

    def _refusal(self, obj: Mapping[str, Any]) -> Exception | None:
        """An API server that has just started does not know everybody's rights."""
        try:
            self._endpoint().ask("POST", REVIEWS, obj, user=REVIEWER.name)
        except (Refused, OSError) as exc:
            return None if isinstance(exc, Refused) and exc.status == CONFLICT else exc
        return None

    def _found(self, case: ReviewedCase) -> dict[str, Any]:
        request = Request.objects.get(pk=case.request_id)
        verbs = (
            AuditEntry.objects.filter(request_uid=str(request.uid)).order_by("number").values_list("verb", flat=True)
        )
        mirror = self._endpoint().ask("GET", f"{CUSTOM}/bundledeploymentrequests/{case.namespace}-{request.number}")
        wish = self._endpoint().ask("GET", f"{CUSTOM}/bundledeployments/{case.namespace}")
        everything = {
            "state": request.state,
            "problem": request.problem,
            "reviews": [
                list(one) for one in request.reviews.order_by("pk").values_list("decision", "username", "channel")
            ],
            "counted": list(request.reviews.counted().values_list("decision", flat=True)),
            "rows": [[row.code, row.review.decision if row.review else ""] for row in case.rows],
            "statuses": [self._status(row) for row in case.rows],
            "audit": list(verbs),
            "is_chain_whole": verify_chain().is_whole,
            "mirror": [mirror["status"]["state"], mirror["status"]["reviewsSummary"], _reasons(mirror)],
            "wish": _reasons(wish),
        }
        return dict(json.loads(json.dumps(everything).replace(case.namespace, "NAME")))

    def _status(self, row: KubectlReview) -> list[Any]:
        """What the reviewer reads, and whether it names the review that was recorded."""
        live = self._endpoint().ask("GET", f"{REVIEWS}/{row.name}")
        conditions = (live.get("status") or {}).get("conditions") or []
        if len(conditions) != 1:
            return conditions
        (condition,) = conditions
        is_true = not row.review_id or condition["message"] == f"recorded as review {row.review_id}"
        return [condition["status"], condition["reason"], is_true]


def _prepared(request: Request) -> str:
    advance(request.pk)
    request.refresh_from_db()
    return request.state


def _reasons(live: Mapping[str, Any]) -> dict[str, str]:
    return {one["type"]: f"{one['status']} {one['reason']}" for one in live["status"]["conditions"]}


def _review(name: str, said: Said, decision: str, request: Request) -> dict[str, Any]:
    spec = {
        "requestRef": {"name": f"{request.deployment.name}-{request.number}"},
        "bundleDeploymentName": request.deployment.name,
        "decision": decision,
        "subjectDigest": request.subject_digest if DECIDED[said].is_about_it else f"sha256:{'0' * 64}",
        "round": request.round,
        "reason": "read it",
        "reviewer": {
            "username": REVIEWER.name,
            "uid": REVIEWER.uid,
            "groups": [*REVIEWER.groups, "system:authenticated"],
        },
    }
    about = {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeploymentReview"}
    return {**about, "metadata": {"name": name}, "spec": spec}


def drawn(events: Mapping[Said, Sequence[str]], count: int, seed: int) -> list[tuple[Said, Kind, int]]:
    """A death right after each record; then every point before any a second time, each time by the next kind.

    0: each of them by every kind.
    """
    chance = random.Random(seed)
    every = [(said, event, name) for said, names in events.items() for event, name in enumerate(names, start=1)]
    chance.shuffle(every)
    recorded = [(said, Kind.KILLED_AFTER, event) for said, event, name in every if name == RECORDED]
    rounds = [
        (said, KINDS[(number + turn) % len(KINDS)], event)
        for turn in range(len(KINDS))
        for number, (said, event, _) in enumerate(every)
    ]
    return [*recorded, *rounds][: count or None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--bundles", required=True)
    parser.add_argument("--runs", type=int, required=True, help="0: every kind at every point")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--binaries", type=Path, required=True)
    options = parser.parse_args()
    with kept(options.folder, options.binaries) as keeper:
        counting = Counting(options.folder, options.bundles, True, keeper, Rewound(""))
        counting.prepare()
        numbers, events = itertools.count(1), {}
        # The row of the claim is made by the first run, and found by all others.
        counting.reviewed(Said.DENY, Kind.NOTHING, 0, next(numbers))
        for said in Said:
            undisturbed = counting.reviewed(said, Kind.NOTHING, 0, next(numbers))
            events[said] = undisturbed["events"]
            _say(undisturbed)
        for said, kind, event in drawn(events, options.runs, options.seed):
            _say(counting.reviewed(said, kind, event, next(numbers)))


def _say(told: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
