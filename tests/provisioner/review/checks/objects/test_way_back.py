"""What going back to a revision cannot undo, as a table; and that nothing of it is said twice, or of other requests."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Gone, WayBack
from provisioner.review.checks.objects import crds, deletions, objects
from provisioner.review.frame import mentioned
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, config_map, facts, judged_by, planned

DELETE, REPLACE, CREATE, UPDATE = Action.DELETE, Action.REPLACE, Action.CREATE, Action.UPDATE
DATA = ObjectRef("", "v1", "PersistentVolumeClaim", "shop", "data-db-0")


def claim() -> dict[str, Any]:
    return an_object("v1", "PersistentVolumeClaim", "data", "shop", spec={})


def stateful_set(*templates: str, **spec: Any) -> dict[str, Any]:
    made = [{"metadata": {"name": name}} for name in templates]
    return an_object("apps/v1", "StatefulSet", "db", "shop", spec={"volumeClaimTemplates": made, **spec})


def job() -> dict[str, Any]:
    return an_object("batch/v1", "Job", "migrate", "shop", spec={})


def crd(*versions: str, stored: tuple[str, ...] = ()) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    served = [{"name": one, "served": True, "storage": one == versions[-1], "schema": schema} for one in versions]
    names = {"kind": "Boat", "plural": "boats", "singular": "boat", "listKind": "BoatList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": served}
    status = {"status": {"storedVersions": list(stored)}} if stored else {}
    made = an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "boats.example.com", spec=spec)
    return {**made, **status}


def going_back(
    obj: dict[str, Any], action: Action, since: Action | None, *, exists: bool | None = None, **rest: Any
) -> list[Finding]:
    """What is said of `obj` on the way back to revision 2, where `since` was done to it by revision 4."""
    gone = (Gone(ObjectRef.of(obj), since, 4),) if since else ()
    around = ClusterSurroundings(exists={DATA.identity: exists} if exists is not None else {})
    given = facts(planned(obj, action, **rest), way_back=WayBack(2, gone), around=around)
    return [
        finding
        for finding in judged_by(given, [deletions.WAY_BACK_CHECK, objects.OBJECTS_CHECK])
        if finding.rule.startswith("HIS")
    ]


@pytest.mark.parametrize(
    ("obj", "action", "since", "words"),
    [
        pytest.param(
            claim(),
            CREATE,
            DELETE,
            "PersistentVolumeClaim shop/data was deleted with revision 4: it is there without the data that it held",
            id="a claim",
        ),
        pytest.param(
            claim(),
            UPDATE,
            REPLACE,
            "PersistentVolumeClaim shop/data was made anew with revision 4: it is there without the data that it held",
            id="a claim that was replaced",
        ),
        pytest.param(
            an_object("v1", "Namespace", "shop"),
            CREATE,
            DELETE,
            "Namespace shop was deleted with revision 4: it is there with nothing in it but what this revision holds",
            id="a namespace",
        ),
        pytest.param(
            an_object("v1", "PersistentVolume", "pv-1"),
            CREATE,
            DELETE,
            "PersistentVolume pv-1 was deleted with revision 4: it is there without a volume; what its former "
            "storage still holds is not known",
            id="a volume",
        ),
        pytest.param(
            crd("v1"),
            CREATE,
            DELETE,
            "CRD boats.example.com was deleted with revision 4: it is there without the objects of its kind",
            id="a CRD",
        ),
    ],
)
def test_what_comes_back_empty_is_said(obj: dict[str, Any], action: Action, since: Action, words: str) -> None:
    (found,) = going_back(obj, action, since)
    assert (found.rule, found.severity, found.message) == ("HIS-01", Severity.DANGEROUS, words)
    assert found.evidence == {"revision": 4, "action": str(since)}


@pytest.mark.parametrize(
    ("exists", "policy", "severity", "variant"),
    [
        pytest.param(True, "Retain", Severity.NOTABLE, "claims-kept", id="kept"),
        pytest.param(False, "Retain", Severity.DANGEROUS, "claims-gone", id="gone"),
        pytest.param(None, "Retain", Severity.UNKNOWN, "claims-left", id="promise 4 not looked up"),
        pytest.param(None, "Delete", Severity.UNKNOWN, "claims-taken-along", id="promise 4 taken along, not looked up"),
    ],
)
def test_a_stateful_set_finds_its_volumes_again_or_begins_empty(
    exists: bool | None, policy: str, severity: Severity, variant: str
) -> None:
    obj = stateful_set("data", persistentVolumeClaimRetentionPolicy={"whenDeleted": policy})
    (found,) = going_back(obj, CREATE, DELETE, exists=exists)
    assert (found.rule, found.severity, found.variant) == ("HIS-01", severity, variant)
    assert found.evidence["claims"] == ["data-db-0"]


def test_one_volume_that_is_gone_is_enough() -> None:
    (found,) = going_back(stateful_set("logs", "data"), CREATE, DELETE, exists=False)
    assert found.severity is Severity.DANGEROUS


@pytest.mark.parametrize(
    "obj", [stateful_set(), config_map(), an_object("v1", "Secret", "s", "shop")], ids=["no volumes", "text", "secret"]
)
def test_what_holds_nothing_but_itself_comes_back_whole(obj: dict[str, Any]) -> None:
    assert going_back(obj, CREATE, DELETE) == []


def test_the_claims_of_a_stateful_set_are_asked_for_by_name() -> None:
    obj = stateful_set("data")
    given = facts(planned(obj, CREATE), way_back=WayBack(2, (Gone(ObjectRef.of(obj), DELETE, 4),)))
    assert mentioned(given, [deletions.WAY_BACK_CHECK]) == [DATA]


def test_a_job_that_is_made_again_runs_again() -> None:
    (found,) = going_back(job(), CREATE, None)
    assert (found.rule, found.severity) == ("HIS-02", Severity.DANGEROUS)
    assert found.message == "Job shop/migrate runs again, as it did when revision 2 was applied"


@pytest.mark.parametrize("action", [Action.NONE, UPDATE, REPLACE], ids=["it is there", "updated", "IMM-01 says it"])
def test_a_job_that_is_there_or_replaced_is_not_said_to_run_again_here(action: Action) -> None:
    assert going_back(job(), action, None, before=job()) == []


@pytest.mark.parametrize("obj", [job(), claim()], ids=["job", "claim"])
def test_a_request_that_goes_nowhere_back_to_says_none_of_it(obj: dict[str, Any]) -> None:
    given = facts(planned(obj, CREATE))
    assert not [finding for finding in judged_by(given, [deletions.WAY_BACK_CHECK]) if finding.rule.startswith("HIS")]


@pytest.mark.parametrize(
    "hostile",
    [
        an_object("apps/v1", "StatefulSet", "db", "shop", spec={"volumeClaimTemplates": "x"}),
        an_object("apps/v1", "StatefulSet", "db", "shop", spec={"volumeClaimTemplates": [1, {}, {"metadata": []}]}),
        an_object("apps/v1", "StatefulSet", "db", "shop", spec=None),
    ],
    ids=["a text", "no names", "no spec"],
)
def test_content_that_is_no_stateful_set_crashes_nothing(hostile: dict[str, Any]) -> None:
    gone = (Gone(ObjectRef.of(hostile), DELETE, 4),)
    given = facts(planned(hostile, CREATE), way_back=WayBack(2, gone))
    rules = {finding.rule for finding in judged_by(given, [deletions.WAY_BACK_CHECK])}
    assert "CRASHED" not in rules


def test_a_version_in_which_objects_are_stored_is_missed_once_by_the_rule_about_it() -> None:
    live, old = crd("v1", "v2", stored=("v1", "v2")), crd("v1")
    given = facts(planned(old, UPDATE, before=live), way_back=WayBack(2), live={ObjectRef.of(old).identity: live})
    found = judged_by(given, [deletions.WAY_BACK_CHECK, crds.DEFINITIONS_CHECK])
    assert [finding.severity for finding in found if finding.rule == "CRD-10"] == [Severity.BREAKING]
    assert not [finding for finding in found if finding.rule.startswith("HIS")]
