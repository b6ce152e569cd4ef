"""What an approval has to name, and in which words it is told what goes with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from approvals import services
from approvals.errors import Unacknowledged
from approvals.models import Request
from approvals.services import Acknowledgement
from provisioner.review.base.facts import ReviewRule
from provisioner.review.base.messages import with_message
from provisioner.review.base.record import to_record
from provisioner.review.crds.live_scene import GOING
from provisioner.values import Note, ObjectRef, Plan, Report, Section, Severity
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import acting

NAMESPACE = ObjectRef("", "v1", "Namespace", "", "shop")
CLAIM = ObjectRef("", "v1", "PersistentVolumeClaim", "shop", "data")
VOLUME = ObjectRef("", "v1", "PersistentVolume", "", "pv-1")
CRD = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "boats.example.com")
CONFIG = ObjectRef("", "v1", "ConfigMap", "shop", "settings")
SECRET = ObjectRef("", "v1", "Secret", "shop", "keys")


def record(ref: ObjectRef) -> dict[str, str]:
    return {part: getattr(ref, part) for part in ("group", "version", "kind", "namespace", "name")}


def action(ref: ObjectRef, name: str = "delete") -> dict[str, Any]:
    return {"action": name, "ref": record(ref)}


SEVEN = Note(GOING, "counted", {"present": [{"variant": "objects", "count": 7, "kind": "Boat"}]})
PODS = Note(GOING, "counted", {"present": [{"variant": "of-kind", "count": 3, "kinds": "Pods"}]})
KEPT = Note(GOING, "deleted-with-it", {"size": "10Gi", "volume": "pv-1", "policy": "Delete"})


def finding(ref: ObjectRef, variant: str, *notes: Note, rule: str = "DEL-01") -> dict[str, Any]:
    made = ReviewRule(rule, Section.OBJECTS, Severity.BREAKING)
    values = {"kind": "Boat", "fields": ["spec.storageClassName"], "more": None, "loss": "data"}
    told = with_message(replace(made.finding(variant, ref, **values), notes=notes))
    (found,) = to_record(Report((), (told,), Plan((), "")))["findings"]
    return dict(found)


def reported(request: Request, actions: list[dict[str, Any]], *findings: dict[str, Any]) -> list[Acknowledgement]:
    report = request.reports.get()
    report.body = {"findings": list(findings), "plan": {"digest": "sha256:p", "actions": actions}}
    report.save()
    return services.acknowledgements(request)


@pytest.mark.parametrize(
    ("found", "name", "words"),
    [
        pytest.param(
            finding(NAMESPACE, "deletes-namespace", PODS),
            "delete Namespace shop",
            "everything in it goes with it: 3 Pods at present",
            id="a namespace",
        ),
        pytest.param(
            finding(CLAIM, "deletes-persistentvolumeclaim", KEPT),
            "delete PersistentVolumeClaim shop/data",
            "its data may go with it: 10Gi on the volume pv-1, which is deleted with it (Delete)",
            id="a claim",
        ),
        pytest.param(
            finding(VOLUME, "deletes-persistentvolume"),
            "delete PersistentVolume pv-1",
            "its data may go with it",
            id="a volume",
        ),
        pytest.param(
            finding(CRD, "deletes-customresourcedefinition", SEVEN),
            "delete CustomResourceDefinition.apiextensions.k8s.io boats.example.com",
            "every object of its kind goes with it: 7 Boat objects at present",
            id="a CRD",
        ),
        pytest.param(finding(CONFIG, "deletes"), "delete ConfigMap shop/settings", "", id="nothing goes with it"),
        pytest.param(finding(SECRET, "deletes-secret"), "delete Secret shop/keys", "", id="S09 a secret"),
    ],
)
def test_what_goes_with_an_object_stands_beside_its_name(
    request_: Request, found: dict[str, Any], name: str, words: str
) -> None:
    assert reported(request_, [{"action": "delete", "ref": found["ref"]}], found) == [Acknowledgement(name, words)]


def test_a_crd_is_told_by_one_of_its_two_findings(request_: Request) -> None:
    both = (finding(CRD, "deleted", SEVEN, rule="CRD-08"), finding(CRD, "deletes-customresourcedefinition", SEVEN))
    (found,) = reported(request_, [action(CRD)], *both)
    assert found.words == "every object of its kind goes with it: 7 Boat objects at present"


def test_S09_a_replacement_that_a_live_object_decides_says_nothing_of_it(request_: Request) -> None:
    found = finding(CLAIM, "replaced", rule="IMM-01")
    withheld = {**found, "message": "it is replaced", "serverWords": found["message"], "withheld": True}
    (told,) = reported(request_, [action(CLAIM, "replace")], withheld)
    assert told.words == "it is replaced"


def test_a_replacement_says_why_and_what_it_costs(request_: Request) -> None:
    words = (
        "and creates it again, because spec.storageClassName cannot be changed: its data is lost unless the volume is"
    )
    (found,) = reported(request_, [action(CLAIM, "replace")], finding(CLAIM, "replaced", rule="IMM-01"))
    assert str(found) == f"replace PersistentVolumeClaim shop/data ({words} kept)"


def test_what_changes_or_comes_is_not_to_be_named(request_: Request) -> None:
    assert reported(request_, [action(CLAIM, "update"), action(NAMESPACE, "create"), action(CRD, "none")]) == []


def test_S03_a_refusal_names_what_is_missing_with_what_goes_with_it(env: World, request_: Request) -> None:
    reported(request_, [action(NAMESPACE), action(CONFIG)], finding(NAMESPACE, "deletes-namespace", PODS))
    given = {"by": acting(env.ada), "request_id": request_.pk, "decision": "Approve", "reason": "", "channel": "rest"}
    with pytest.raises(Unacknowledged) as refused:
        services.review(
            **given, subject_digest=request_.subject_digest, acknowledges=["delete ConfigMap shop/settings"]
        )
    assert refused.value.facts["missing"] == ["delete Namespace shop"]
    assert "delete Namespace shop (everything in it goes with it: 3 Pods at present)" in str(refused.value)


def test_a_refusal_over_very_many_objects_says_how_many_more(env: World, request_: Request) -> None:
    many = [action(ObjectRef("", "v1", "ConfigMap", "shop", f"one-{number:03}")) for number in range(100)]
    reported(request_, many)
    given = {"by": acting(env.ada), "request_id": request_.pk, "decision": "Approve", "reason": "", "channel": "rest"}
    with pytest.raises(Unacknowledged, match="and 80 more") as refused:
        services.review(**given, subject_digest=request_.subject_digest)
    assert len(refused.value.facts["missing"]) == 100
