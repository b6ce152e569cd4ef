"""1,500 reviews by kubectl of one approver, and 700 BundleDeployments of one person: how long others wait (S40).

Run by `make bench`. One worker, one watch, a real API server whose policies say who wrote.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import Identity, ObjectRef
from tests.bench.watching.crowd import GROUP_VERSION, PATIENCE_SECONDS, THREADS, Crowd, crowd
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.process import wait_until

REVIEWS, DEPLOYMENTS = 1500, 700
GOAL_SECONDS = 15.0
KIND = "BundleDeploymentReview"
IN_FORCE = "SELECT count(*) FROM approvals_reviewadmission WHERE problem = ''"
SUBJECT = (
    "SELECT r.subject_digest FROM approvals_request r JOIN approvals_bundledeployment d ON d.id = r.deployment_id"
    " WHERE d.name = '{}'"
)


def review(here: Crowd, of: str, who: str, name: str, decision: str) -> dict[str, Any]:
    ((digest,),) = here.machine.rows(SUBJECT.format(of))
    reviewer = {"username": who, "uid": "", "groups": ["system:authenticated"]}
    said = {"decision": decision, "subjectDigest": digest, "round": 1, "reason": "read it", "reviewer": reviewer}
    about = {"apiVersion": GROUP_VERSION, "kind": KIND, "metadata": {"name": name}}
    return {**about, "spec": {"requestRef": {"name": f"{of}-1"}, "bundleDeploymentName": of, **said}}


def seconds_until_told(admin: Api, said: dict[str, Any]) -> tuple[float, str]:
    """Until its status says what became of it, and what that is."""
    began, found = time.perf_counter(), list[str]()

    def is_told() -> bool:
        live = admin.get(ObjectRef.of(said)) or {}
        found[:] = [one["reason"] for one in (live.get("status") or {}).get("conditions") or ()]
        return bool(found)

    wait_until(is_told, "the review is counted", PATIENCE_SECONDS)
    return time.perf_counter() - began, found[0]


@pytest.mark.controlplane
def test_figures_of_what_one_person_makes_hundreds_of(tmp_path: Path, controlplane: Endpoint, redis: str) -> None:
    with crowd(tmp_path, controlplane, redis) as here:
        crowded, other, later, last = (f"{here.mark}-{name}" for name in ("crowded", "other", "later", "last"))
        here.bring_all([crowded, other], here.controller)
        here.seconds_until_in_review(crowded)
        here.seconds_until_in_review(other)
        wait_until(lambda: here.machine.rows(IN_FORCE)[0][0] == 1, "the policies are in force", PATIENCE_SECONDS)
        time.sleep(15)
        mallory, carol = (here.admin.acting_as(Identity(who)) for who in ("mallory", "carol"))
        first = review(here, crowded, "mallory", f"{here.mark}-0", "Approve")
        with ThreadPoolExecutor(THREADS) as pool:
            named = [{**first, "metadata": {"name": f"{here.mark}-{number}"}} for number in range(REVIEWS)]
            list(pool.map(mallory.create, named))
        deny = review(here, other, "carol", f"{here.mark}-deny", "Deny")
        carol.create(deny)
        denied, reason = seconds_until_told(here.admin, deny)
        here.bring(later, here.controller)
        asked = here.seconds_until_in_review(later)
        here.bring_all([f"{here.mark}-crowd-{number:03}" for number in range(DEPLOYMENTS)], carol)
        here.bring(last, here.controller)
        beside = here.seconds_until_in_review(last)
    print(
        f"\nbeside {REVIEWS} reviews of one approver another's Deny is {reason} after {denied:.1f} s, and a request is in"
        f" review after {asked:.1f} s; beside {DEPLOYMENTS} BundleDeployments of one person after {beside:.1f} s"
    )
    assert reason == "Counted"
    assert max(denied, asked, beside) <= GOAL_SECONDS
