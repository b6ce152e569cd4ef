"""What is said of data that goes: claims, volumes, stateful sets, whole namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Facts, Listed, Listing
from provisioner.review.checks.objects import deletions, objects
from provisioner.review.frame import listings, wanted
from provisioner.review.workloads.mounts import VOLUMES
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, facts, judged_by, planned

CHECKS = [objects.OBJECTS_CHECK, deletions.DELETIONS_CHECK]


def claim(name: str = "data", *, volume: str = "pv-1", size: str = "10Gi") -> dict[str, Any]:
    spec = {"resources": {"requests": {"storage": size}}} | ({"volumeName": volume} if volume else {})
    return an_object("v1", "PersistentVolumeClaim", name, "shop", spec=spec)


def volume(name: str = "pv-1", policy: str = "Delete") -> dict[str, Any]:
    return an_object("v1", "PersistentVolume", name, spec={"persistentVolumeReclaimPolicy": policy})


def stateful_set(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"name": "data"}}
    return an_object("apps/v1", "StatefulSet", "db", "shop", spec={"volumeClaimTemplates": [template], **spec})


def deletion(obj: dict[str, Any], *there: dict[str, Any], unread: str = "") -> Finding:
    """The finding on the deletion of `obj` in a cluster that holds `there`; kinds of `unread` nobody may list."""
    live = {ObjectRef.of(obj).identity: obj}
    given = facts(planned(obj, Action.DELETE, before=obj), live=live)
    lists = {one: _listed(one, there, unread) for one in listings(given, CHECKS)}
    given = facts(planned(obj, Action.DELETE, before=obj), live=live, around=ClusterSurroundings(lists=lists))
    return next(finding for finding in judged_by(given, CHECKS) if finding.rule == "DEL-01")


def _listed(listing: Listing, there: tuple[dict[str, Any], ...], unread: str) -> Listed:
    if listing.kind == unread:
        return Listed(total=None, problem="forbidden")
    found = tuple(one for one in there if one["kind"] == listing.kind)
    return Listed(found, len(found))


@pytest.mark.parametrize(
    ("held", "there", "severity", "words"),
    [
        pytest.param(
            claim(),
            volume(),
            Severity.BREAKING,
            "10Gi on the volume pv-1, which is deleted with it (Delete)",
            id="its volume goes",
        ),
        pytest.param(
            claim(),
            volume(policy="Retain"),
            Severity.DANGEROUS,
            "10Gi on the volume pv-1, which stays and has to be bound again by hand (Retain)",
            id="its volume stays",
        ),
        pytest.param(claim(volume=""), volume(), Severity.DANGEROUS, "it has no volume yet", id="it has none"),
        pytest.param(
            claim(),
            volume("another"),
            Severity.BREAKING,
            "of which nobody could look up whether it stays",
            id="not seen",
        ),
    ],
)
def test_a_claim_that_goes_says_how_much_and_whether_its_volume_stays(
    held: dict[str, Any], there: dict[str, Any], severity: Severity, words: str
) -> None:
    found = deletion(held, there)
    assert (found.severity, words in found.message) == (severity, True)


def test_a_claim_stays_breaking_where_volumes_may_not_be_listed() -> None:
    assert deletion(claim(), volume(policy="Retain"), unread="PersistentVolume").severity is Severity.BREAKING


def test_a_namespace_says_what_goes_with_it_in_numbers_and_sizes() -> None:
    pod = an_object("v1", "Pod", "web", "shop")
    there = (claim("a"), claim("b", volume="pv-2"), volume(), volume("pv-2", "Retain"), pod)
    found = deletion(an_object("v1", "Namespace", "shop"), *there)
    assert (
        "2 PersistentVolumeClaims with 20Gi, of which 10Gi on 1 volume goes for good, 1 Pod at present" in found.message
    )
    assert found.evidence["counts"]["PersistentVolumeClaim"] == 2
    assert [one["policy"] for one in found.evidence["volumes"]] == ["Delete", "Retain"]


def test_a_stateful_set_takes_its_claims_along_only_where_it_says_so() -> None:
    there = (claim("data-db-0"), claim("data-db-x"), claim("other-db-0"), volume())
    kept = deletion(stateful_set(), *there)
    gone = deletion(stateful_set(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"}), *there)
    assert "1 claim stays by its own retention policy" in kept.message
    assert "its claims go with it: 1 PersistentVolumeClaim with 10Gi, of which 10Gi on 1 volume goes" in gone.message


@pytest.mark.parametrize(
    ("when", "replicas", "is_found"), [("Delete", 1, True), ("Retain", 1, False), ("Delete", 3, False)]
)
def test_scaling_down_says_which_claims_go(when: str, replicas: int, *, is_found: bool) -> None:
    policy = {"persistentVolumeClaimRetentionPolicy": {"whenScaled": when}}
    before, after = stateful_set(replicas=3, **policy), stateful_set(replicas=replicas, **policy)
    given = facts(
        planned(after, Action.UPDATE, before=before, after=after), live={ObjectRef.of(before).identity: before}
    )
    found = [finding for finding in judged_by(given, CHECKS) if finding.rule == "DEL-02"]
    words = "the PersistentVolumeClaims of pods 1 to 2 would be deleted, by its own retention policy"
    assert [(finding.severity, words in finding.message) for finding in found] == [(Severity.BREAKING, True)] * is_found


def test_S15_no_deletion_of_a_stateful_set_is_folded_with_what_its_claims_hold() -> None:
    """Each is looked at again before it goes, by what was said of it."""
    many = [{**stateful_set(), "metadata": {"name": f"db-{number}", "namespace": "shop"}} for number in range(12)]
    held = [claim(f"data-db-{number}-0") for number in range(12)]
    actions = [planned(one, Action.DELETE, before=one) for one in many]
    live = {ObjectRef.of(one).identity: one for one in many}
    given = facts(*actions, live=live)
    lists = {one: _listed(one, (*held, volume()), "") for one in listings(given, CHECKS)}
    found = judged_by(facts(*actions, live=live, around=ClusterSurroundings(lists=lists)), CHECKS)
    assert sum(1 for finding in found if finding.rule == "DEL-01" and len(finding.evidence["volumes"]) == 1) == 12


def test_claims_and_stateful_sets_that_go_are_asked_for() -> None:
    given = facts(planned(claim(), Action.DELETE), planned(stateful_set(), Action.DELETE))
    assert {one.kind for one in wanted(given.content, given.plan, CHECKS)} == {"PersistentVolumeClaim", "StatefulSet"}
    assert VOLUMES in listings(given, CHECKS)


def test_nothing_is_asked_for_where_there_is_no_cluster() -> None:
    given = Facts(**{name: getattr(facts(planned(claim(), Action.DELETE)), name) for name in ("content", "plan")})
    assert listings(Facts(given.content, given.plan, is_offline=True), CHECKS) == []


@pytest.mark.parametrize("unread", ["PersistentVolumeClaim", "Secret"])
def test_what_could_not_be_counted_is_said(unread: str) -> None:
    found = deletion(an_object("v1", "Namespace", "shop"), unread=unread)
    assert f"not counted: {unread}" in found.message
    assert found.severity is Severity.BREAKING


def ran(kind: tuple[str, str], **status: Any) -> dict[str, Any]:
    return an_object(*kind, "certgen-v1", "shop", status=status)


JOB, POD = ("batch/v1", "Job"), ("v1", "Pod")


@pytest.mark.parametrize(
    ("obj", "severity", "words"),
    [
        pytest.param(
            ran(
                JOB,
                conditions=[{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
            ),
            Severity.NOTABLE,
            "which has completed: nothing of it runs any more",
            id="a Job that completed",
        ),
        pytest.param(
            ran(JOB, conditions=[{"type": "Failed", "status": "True"}]),
            Severity.NOTABLE,
            "which has failed",
            id="failed",
        ),
        pytest.param(ran(POD, phase="Succeeded"), Severity.NOTABLE, "which has completed", id="a Pod that completed"),
        pytest.param(ran(JOB, active=1), Severity.DANGEROUS, "Deletes Job shop/certgen-v1", id="a Job that runs"),
        pytest.param(
            ran(
                JOB,
                conditions=[{"type": "Complete", "status": "False"}, {"type": "SuccessCriteriaMet", "status": "True"}],
            ),
            Severity.DANGEROUS,
            "Deletes Job shop/certgen-v1",
            id="a Job whose pods still end",
        ),
        pytest.param(
            ran(POD, phase="Running"), Severity.DANGEROUS, "Deletes Pod shop/certgen-v1", id="a Pod that runs"
        ),
        pytest.param(ran(JOB, conditions="?"), Severity.DANGEROUS, "Deletes Job shop/certgen-v1", id="rubbish"),
    ],
)
def test_what_has_run_to_its_end_stops_nothing(obj: dict[str, Any], severity: Severity, words: str) -> None:
    found = deletion(obj)
    assert (found.severity, words in found.message) == (severity, True)


def test_a_job_that_nobody_could_look_at_is_deleted_as_any_other() -> None:
    gone = planned(ran(JOB), Action.DELETE, before=ran(JOB))
    (found,) = [finding for finding in judged_by(facts(gone), CHECKS) if finding.rule == "DEL-01"]
    assert found.severity is Severity.DANGEROUS
    assert wanted(facts(gone).content, facts(gone).plan, CHECKS) == [
        ObjectRef("batch", "v1", "Job", "shop", "certgen-v1")
    ]
